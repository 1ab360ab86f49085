// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Settings

/// How the commands that speak to the running daemon find it.
struct AdminOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp("The admin socket; by default the one of the configuration.", valueName: "path"))
    var socket: String?

    /// A connection to the daemon's admin socket.
    func client() throws -> AdminClient {
        if let socket { return AdminClient(path: socket) }
        let settings = try configuration.load()
        for address in AdminAddresses.of(settings) {
            if case .unix(let path, _) = address { return AdminClient(path: path) }
        }
        throw Failure("\(configuration.config): admin.address names no Unix socket", code: EX_CONFIG)
    }
}

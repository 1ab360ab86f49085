// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Proxy
internal import Systemd

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the daemon.",
        discussion: """
            SIGHUP reads the configuration again, SIGTERM finishes the exchanges under way and ends. Under systemd it \
            tells when it is ready.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Flag(name: .long, help: "Only read the configuration, as `check` does.")
    var check = false

    func run() throws {
        if check {
            _ = try configuration.load()
            return
        }
        do {
            let settings = try configuration.load()
            try Daemon(settings: settings, path: configuration.config).run()
        } catch let error as ListenError {
            throw failure(error.description, code: EX_UNAVAILABLE)
        } catch let error as ListenSocketsError {
            throw failure(error.description, code: EX_CONFIG)
        } catch let error as CompositionError {
            throw failure(error.description, code: EX_CONFIG)
        } catch let error as StateError {
            throw failure(error.reason, code: EX_UNAVAILABLE)
        } catch let code as ExitCode {
            tell("\(configuration.config) has errors; countersign check shows them.")
            throw code
        }
    }

    private func failure(_ text: String, code: Int32) -> Failure {
        tell(text)
        return Failure(text, code: code)
    }

    /// `systemctl status` shows the last sentence of a service that has failed, too.
    private func tell(_ reason: String) {
        ServiceNotifier().send(.status("Not started: \(reason.onOneLine)"))
    }
}

/// An end with one line on standard error and an exit code of sysexits.h.
struct Failure: Error, CustomStringConvertible {
    let description: String
    let code: Int32

    init(_ description: String, code: Int32) {
        self.description = description
        self.code = code
    }
}

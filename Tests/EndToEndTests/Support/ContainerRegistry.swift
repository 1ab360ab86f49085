// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import TestSupport

/// A real docker-registry that demands tokens, and the token service that it sends its callers to.
final class ContainerRegistry: Sendable {
    /// The registry's port.
    let port = Ports.next()
    /// The token service's port.
    let tokenPort: UInt16
    private let folder: Folder
    private let children: [Child]

    /// Starts both, with an empty storage.
    init() async throws {
        folder = try Folder()
        let service = try await Self.start(["/usr/bin/python3", Self.script, folder.path], "service", in: folder)
        let portFile = folder.path(of: "port")
        guard await eventually({ !readFile(portFile).isEmpty }),
            let tokenPort = UInt16(folder.text(of: "port"))
        else {
            service.signal(SIGKILL)
            throw ChildError(description: "no token service: \(folder.text(of: "service.err"))")
        }
        self.tokenPort = tokenPort
        let configuration = folder.write(
            """
            version: 0.1
            log: { level: warn }
            storage: { filesystem: { rootdirectory: \(folder.path(of: "storage")) } }
            http: { addr: "127.0.0.1:\(port)", secret: tests }
            auth:
              token:
                realm: http://127.0.0.1:\(tokenPort)/token
                service: registry.tests
                issuer: tests
                rootcertbundle: \(folder.path(of: "certificate.pem"))

            """, to: "registry.yml")
        let registry = try await Self.start(
            ["/usr/bin/docker-registry", "serve", configuration], "registry", in: folder)
        children = [registry, service]
        let port = port
        guard await eventually({ (try? RawConnection(port: port)) != nil }) else {
            for child in children { child.signal(SIGKILL) }
            throw ChildError(description: "no registry: \(folder.text(of: "registry.err"))")
        }
    }

    /// The requests that the token service got: the status of its answer, and the scopes asked for.
    var tokenRequests: [String] { folder.text(of: "requests").split(separator: "\n").map(String.init) }

    /// Sets the lifetime of tokens from now on, in seconds.
    func letTokensLive(seconds: Int) { folder.write("\(seconds)", to: "life") }

    /// Ends both.
    func stop() async { for child in children { await child.end() } }

    private static func start(_ arguments: [String], _ name: String, in folder: Folder) async throws -> Child {
        try await Child.start(
            Child.Start(
                arguments: arguments, environment: baseEnvironment(folder), folder: folder.path,
                output: folder.path(of: "\(name).out"), errors: folder.path(of: "\(name).err")))
    }

    private static let script =
        #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/Tests/Scripts/registry-token-service"
}

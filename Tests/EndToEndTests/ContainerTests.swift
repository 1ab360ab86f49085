// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

/// The root of the container image, and the commands of the Kubernetes manifests in it.
@Suite("In a container")
struct ContainerTests {
    private static let manifests = ["sidecar.yaml", "daemonset.yaml"]

    private func manifest(_ name: String) -> String { Repository.text(of: "config/kubernetes/\(name)") }

    /// Returns the file in a manifest's ConfigMap: the indented lines after `countersign.yaml: |`.
    private func configuration(in manifest: String) -> String {
        let lines = manifest.split(separator: "\n", omittingEmptySubsequences: false)
            .drop { $0 != "  countersign.yaml: |" }.dropFirst().prefix { $0.hasPrefix("    ") }
        return lines.map { $0.dropFirst(4) + "\n" }.joined()
    }

    @Test(
        "the image serves: read-only, as nobody in particular, with a Secret as its credentials, and its probes tell the truth"
    )
    func serves() async throws {
        var bank = BankConfiguration()
        bank.sources = ["systemd"]
        bank.environment = [:]
        try await withBank(bank, startsDaemon: false) { bank in
            let folder = bank.folder
            let root = folder.path(of: "root")
            let assembled = try await Command.run(
                [Repository.path(of: "config/container/assemble"), Binary.path, root], in: folder
            )
            #expect(assembled.exit == 0, "\(assembled)")
            folder.makeFolder("config")
            folder.makeFolder("secrets")
            folder.write("1234", to: "secrets/bank-pin.pin")
            let text = configuration(in: manifest("sidecar.yaml"))
                .replacing("127.0.0.1:8080", with: "127.0.0.1:\(bank.port)")
                .replacing("https://mfp.bank.example", with: "http://127.0.0.1:\(bank.upstream.port)")
            folder.write(text, to: "config/countersign.yaml")
            let script = Repository.path(of: "Tests/Scripts/container-root")
            let daemon = try await Child.start(
                Child.Start(
                    arguments: [script, root, folder.path(of: "config"), folder.path(of: "secrets")],
                    environment: baseEnvironment(folder), folder: folder.path, output: folder.path(of: "out"),
                    errors: folder.path(of: "log")))
            defer { daemon.signal(SIGKILL) }
            #expect(
                await eventually { daemon.exitCode != nil || folder.text(of: "log").contains("ready") })
            if daemon.exitCode == 77 { try Test.cancel("\(folder.text(of: "log"))") }
            #expect(daemon.exitCode == nil, "\(folder.text(of: "log"))")
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)

            let probes = probes(in: manifest("sidecar.yaml"))
            #expect(
                Set(probes) == [["/usr/bin/countersign", "status"], ["/usr/bin/countersign", "status", "--live"]])
            for probe in probes {
                let answer = try await Command.run([script, "--beside", "\(daemon.pid)"] + probe, in: folder)
                #expect(answer.exit == 0, "\(probe): \(answer)")
            }
            let shell = try await Command.run([script, "--beside", "\(daemon.pid)", "/bin/sh"], in: folder)
            #expect(shell.exit != 0 && shell.errors.contains("No such file"), "\(shell)")
            daemon.signal(SIGTERM)
            #expect(await daemon.waitForExit() == 0)
        }
    }

    @Test("what the manifests configure is right, and their volumes are where the image looks")
    func manifests() async throws {
        let containerfile = Repository.text(of: "config/container/Containerfile")
        for name in Self.manifests {
            let folder = try Folder()
            let text = manifest(name)
            folder.write(configuration(in: text), to: "countersign.yaml")
            folder.makeFolder("secrets")
            folder.write("1234", to: "secrets/bank-pin.pin")
            folder.write(String(repeating: "a", count: 44), to: "secrets/shared.key")
            let check = try await Command.countersign(
                "check", "--config", folder.path(of: "countersign.yaml"),
                environment: ["CREDENTIALS_DIRECTORY": folder.path(of: "secrets")], in: folder)
            #expect(check.exit == 0, "\(name): \(check)")
            #expect(text.contains("readOnlyRootFilesystem: true") && text.contains("runAsUser: 65532"))
            for (variable, volume) in [
                ("STATE_DIRECTORY", "state"), ("RUNTIME_DIRECTORY", "runtime"),
                ("CREDENTIALS_DIRECTORY", "credentials"),
            ] {
                let path = try #require(containerfile.firstMatch(of: try Regex("\(variable)=(\\S+)"))?[1].substring)
                let mounts = text.matches(of: try Regex("\\{ name: \(volume), mountPath: ([^, ]+)"))
                #expect(mounts.contains { path.hasPrefix($0[1].substring ?? "?") }, "\(name): \(volume)")
            }
            let pods = try await Repository.script(
                "pod-volumes", [Repository.path(of: "config/kubernetes/\(name)")], in: folder)
            #expect(pods.exit == 0 && pods.output.contains("1 pod"), "\(pods)")
        }
    }

    /// Returns the commands of a manifest's probes.
    private func probes(in manifest: String) -> [[String]] {
        manifest.matches(of: /exec: \{ command: \[([^\]]*)\] \}/).map { match in
            match.1.split(separator: ",").map { $0.trimmingPrefix(" ") }.map(String.init)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Basics
internal import ChallengeHandling
internal import Credentials
internal import Curl
internal import Glibc
internal import Secrets
internal import Settings
internal import System

struct BugReportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bugreport", abstract: "Write one file with what a bug report needs, without secrets.",
        discussion: """
            Versions, the effective configuration, status with the last conversations, doctor, and an hour of the journal. Values \
            of credentials are not in any of these; those that can be read here are replaced if they are found all the same. Host \
            names, paths, and names of users and credentials are in it: read it before you send it.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The file to write, which must not exist; - prints. Default: countersign-bugreport-TIME.txt",
            valueName: "file"),
        completion: .file())
    var output: String?

    func run() throws {
        let report = BugReport(configuration: configuration.config)
        let text = Redaction.text(report.text, without: report.secrets).harmless
        let now = SystemClock.wallClock()
        guard let path = output ?? Self.name(at: now), path != "-" else { return Process.print(lines: text) }
        do throws(SystemError) {
            let file = try Descriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
            try file.writeAll(Array(text.utf8))
        } catch {
            throw Failure("cannot write \(path): \(error)", code: EX_UNAVAILABLE)
        }
        Process.print("\(path): read it before you send it; it names hosts, paths, users and credentials")
    }

    private static func name(at now: Int64) -> String? {
        let time = CivilTime(millisecondsSince1970: now)
        let date = "\(time.date.year.padded(to: 4))\(time.date.month.padded(to: 2))\(time.date.day.padded(to: 2))"
        let clock = "\(time.hour.padded(to: 2))\(time.minute.padded(to: 2))\(time.second.padded(to: 2))"
        return "countersign-bugreport-\(date)T\(clock)Z.txt"
    }
}

/// The text of a bug report, and the secrets that must not be in it.
struct BugReport {
    private static let timeout = Duration.seconds(120)
    private static let leftOut = """
        - values of credentials and of keyrings; sessions, cookies and tokens
        - the environment, but for variables that the configuration names outside templates: they are replaced by their values
        - bodies, queries and fields of requests and responses
        - the access log, and all of the journal that is older than an hour
        - state files (latches, sealed sessions)
        - comments of the configuration
        """

    /// The path of the configuration.
    let configuration: String

    /// All sections. A section that cannot be made gives the reason.
    var text: String {
        let program = "/proc/self/exe"
        let file = ["--config", configuration]
        let sections: [(title: String, text: String)] = [
            ("Versions", versions),
            ("Configuration in force after defaults", output(of: [program, "config", "--effective"] + file)),
            ("Status", output(of: [program, "status"] + file)),
            ("Status and the last conversations, as JSON", output(of: [program, "status", "--json"] + file)),
            ("Doctor", output(of: [program, "doctor"] + file)),
            (
                "Journal of the last hour",
                output(of: [
                    "/usr/bin/journalctl", "--unit=countersign.service", "--since=-1h", "--no-pager", "--lines=5000",
                    "--output=short-iso",
                ])
            ),
            ("Left out", Self.leftOut),
        ]
        return sections.map { "==== \($0.0)\n\n\($0.1.isEmpty ? "(nothing)" : $0.1)\n" }.joined(separator: "\n")
    }

    /// Values of credentials that can be read without a prompt and without a helper.
    var secrets: [String] {
        guard let settings = ConfigurationFile(path: configuration).read().settings else { return [] }
        var sources = settings.credentials
        sources.sources = sources.sources.filter { source in
            switch source {
            case .environment, .environmentFile, .keyring, .systemd: true
            default: false
            }
        }
        let (names, known) = (Set(settings.neededFields.keys), sources)
        return Blocking.run {
            let composition = CredentialComposition(known, asker: NobodyAsked(), oneTimePasswords: NoOneTimePasswords())
            var values: [String] = []
            for name in names {
                guard let credential = try? await composition.credential(named: name) else { continue }
                values += credential.fields.filter { $0.key != "username" }.values.map { $0.revealText() }
            }
            return values.filter { $0.utf8.count >= 4 }
        }
    }

    private var versions: String {
        let system = (try? FileSystem.contents(of: "/etc/os-release", limit: 65_536)) ?? []
        let kernel = (try? FileSystem.contents(of: "/proc/version", limit: 4096)) ?? []
        let texts = [
            String(decoding: system, as: UTF8.self), String(decoding: kernel, as: UTF8.self),
            output(of: ["/usr/bin/systemctl", "--version"]),
        ]
        let lines = texts.map { text -> Substring in
            let lines = text.split(separator: "\n")
            return lines.first { $0.hasPrefix("PRETTY_NAME=") } ?? lines.first ?? "?"
        }
        return "countersign \(Version.text)\n\(CurlFeatures.installed.summary)\n\(lines.joined(separator: "\n"))\n"
            + "user \(geteuid())"
    }

    /// Returns the output of a command, with its errors, and its exit code if that is not 0.
    private func output(of command: [String]) -> String {
        do throws(HelperProcess.Failure) {
            let run = try HelperProcess(command: command, environment: Process.environment, outputLimit: 8 << 20)
                .run([], timeout: Self.timeout)
            let code = run.exitCode ?? -1
            let lines = [run.standardOutput, run.standardError].map { String(decoding: $0, as: UTF8.self) }
            return lines.joined() + (code == 0 ? "" : "(exit \(code))")
        } catch {
            return "(\(command.first ?? ""): \(error.reason))"
        }
    }
}

/// Asker that refuses every question.
private struct NobodyAsked: SecretAsker {
    func ask(_ what: String, id: String) throws(AskFailure) -> Secret {
        throw AskFailure(reason: "a bug report asks no questions")
    }
}

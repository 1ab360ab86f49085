// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The real daemon as a process of its own.
final class DaemonProcess: Sendable {
    /// The process.
    let child: Child
    private let folder: Folder

    private init(child: Child, folder: Folder) {
        self.child = child
        self.folder = folder
    }

    /// Starts `countersign serve` with `countersign.yaml` of that folder, and waits until it says that it is ready.
    ///
    /// `program`: another one than `countersign`, with challenges of its own. `before`: the words before the program's name, for something that starts it in its turn.
    static func start(
        in folder: Folder, program: String = Binary.path, environment: [String: String] = [:], before: [String] = []
    ) async throws -> DaemonProcess {
        folder.makeFolder("state")
        folder.makeFolder("run")
        let earlier = readyLines(in: folder)
        let daemon = DaemonProcess(
            child: try await Child.start(
                Child.Start(
                    arguments: before + [program, "serve", "--config", folder.path(of: "countersign.yaml")],
                    environment: baseEnvironment(folder).merging(environment) { $1 }, folder: folder.path,
                    output: folder.path(of: outputName), errors: folder.path(of: logName))), folder: folder)
        // systemd-socket-activate starts it with the first connection only.
        guard before.isEmpty else { return daemon }
        _ = await eventually { daemon.child.exitCode != nil || readyLines(in: folder) > earlier }
        guard daemon.child.exitCode == nil, readyLines(in: folder) > earlier else {
            daemon.child.signal(SIGKILL)
            throw ChildError(description: "the daemon did not start (\(daemon.child.exitCode ?? -1)):\n\(daemon.log)")
        }
        return daemon
    }

    /// All that it has logged, and those before it in the same folder.
    var log: String { folder.text(of: Self.logName) }

    /// Waits until the log contains `text` at least `times` times.
    func waitForLog(_ text: String, times: Int = 1) async -> Bool {
        await eventually { log.components(text) >= times }
    }

    /// Number of open descriptors.
    var descriptors: Int { entries(of: "/proc/\(child.pid)/fd").count }

    /// Returns the `RLIMIT_NOFILE` that leaves room for `count` more descriptors. The limit applies to numbers: free
    /// ones below the highest one in use count, too.
    func descriptorLimit(forMore count: Int) -> Int {
        let used = Set(entries(of: "/proc/\(child.pid)/fd").compactMap { Int($0) })
        var (limit, free) = (0, 0)
        while free < count {
            if !used.contains(limit) { free += 1 }
            limit += 1
        }
        return limit
    }

    /// The memory that it holds, in kilobytes.
    var residentKilobytes: Int { kilobytes("VmRSS:") }
    /// The most memory that it ever held, in kilobytes.
    var peakKilobytes: Int { kilobytes("VmHWM:") }

    private func kilobytes(_ name: String) -> Int {
        let status = String(decoding: readFile("/proc/\(child.pid)/status"), as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    private static func readyLines(in folder: Folder) -> Int { folder.text(of: logName).components(#""ready""#) }

    private static let logName = "daemon.log"
    private static let outputName = "daemon.out"
}

extension String {
    /// Returns how often that text occurs.
    func components(_ text: String) -> Int {
        var count = 0
        var rest = self[...]
        while let found = rest.firstRange(of: text) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }
}

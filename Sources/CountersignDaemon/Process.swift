// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The process as the commands see it.
enum Process {
    /// The environment, read once.
    static let environment: [String: String] = {
        var result: [String: String] = [:]
        var entry = unsafe environ
        while let line = unsafe entry.pointee {
            let text = unsafe String(cString: line)
            if let equals = text.firstIndex(of: "=") {
                result[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            unsafe entry += 1
        }
        // Systemd keeps there what it passes to the unit: root, who may read it, looks as the daemon does.
        if result["CREDENTIALS_DIRECTORY"] == nil, geteuid() == 0,
            unsafe access(Self.unitCredentials, R_OK | X_OK) == 0
        {
            result["CREDENTIALS_DIRECTORY"] = Self.unitCredentials
        }
        return result
    }()

    private static let unitCredentials = "/run/credentials/countersign.service"

    /// One line to standard error.
    static func complain(_ line: String) {
        write(line + "\n", to: STDERR_FILENO)
    }

    /// One line to standard output, at once: it may be a pipe that somebody reads along.
    static func say(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// The wall clock, in milliseconds since 1970.
    @Sendable
    static func wallClock() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

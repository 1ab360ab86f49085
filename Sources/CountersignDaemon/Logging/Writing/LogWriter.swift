// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Logging
internal import Systemd

/// Writes batches of lines to where they go; runs on the thread of a ``LogQueue``.
struct LogWriter: Sendable {
    let destination: LogDestination
    /// Standard error, except in tests.
    var descriptor: Int32 = STDERR_FILENO
    /// How long a descriptor that does not block may take no more, in milliseconds; -1: as long as it likes.
    var patience: Int32 = -1

    /// Writes a batch, and behind it a line about those that were dropped.
    func write(_ lines: [LogLine], dropped: Int) {
        var all = lines
        if dropped > 0 {
            // They were dropped while these waited, so the gap comes after them.
            let record = LogRecord(
                time: .now, level: .warning, logger: "log", message: "log lines dropped: their reader is too slow",
                metadata: ["dropped": .stringConvertible(dropped)])
            all.append(LogLine(record, for: destination))
        }
        var bytes: [UInt8] = []
        for line in all {
            switch line {
            case .bytes(let line): bytes += line
            case .entry(let entry): send(entry)
            }
        }
        writeAll(bytes)
    }

    private func send(_ entry: JournalEntry) {
        do {
            try Journal.send(entry)
        } catch {
            // Standard error is the journal's own stream, so the text at least arrives.
            guard let end = entry.ends.first else { return }
            writeAll(entry.arena[..<end].dropFirst("MESSAGE=".utf8.count) + [0x0A])
        }
    }

    /// Writes everything, however long it takes. A descriptor that takes no more loses the rest.
    private func writeAll(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        var start = 0
        while start < bytes.count {
            let written = unsafe bytes.withUnsafeBytes { bytes in
                unsafe Glibc.write(descriptor, bytes.baseAddress?.advanced(by: start), bytes.count - start)
            }
            if written > 0 {
                start += written
            } else if written < 0, errno == EAGAIN {
                // Somebody who shares this terminal or pipe has set it to non-blocking.
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                let ready = unsafe poll(&wanted, 1, patience)
                guard ready > 0 || (ready < 0 && errno == EINTR) else { return }
            } else if written == 0 || errno != EINTR {
                return
            }
        }
    }
}

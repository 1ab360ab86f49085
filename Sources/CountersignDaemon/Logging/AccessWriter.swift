// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Logging
internal import Proxy
internal import Settings
internal import System

/// Writer of the access log.
///
/// A queue with a separate thread keeps event loops from waiting for a disk. Lines that do not fit into the queue are
/// dropped, and the log reports their number.
final class AccessWriter: AccessRecorder {
    let wantsQuery: Bool
    private let format: AccessFormat
    private let queue: LogQueue

    /// The access log of `settings`; `nil` if it is not configured. Throws if the file cannot be opened.
    ///
    /// Each writer opens the file again, so that a reload releases a file that was moved.
    init?(_ settings: AccessLogSettings) throws(CompositionError) {
        switch settings.format {
        case .none: return nil
        case .common: format = .common
        case .json: format = .json
        }
        wantsQuery = settings.query
        let file = try AccessFile(settings.path)
        let logger = Logger(label: "access")
        do throws(ThreadError) {
            queue = try LogQueue(capacity: 4 * LogQueue.defaultCapacity) { lines, dropped in
                if dropped > 0 {
                    logger.warning(
                        "access log lines dropped: their reader is too slow",
                        metadata: ["dropped": .stringConvertible(dropped)])
                }
                file.write(lines)
            }
        } catch {
            throw CompositionError("access-log: \(error)")
        }
    }

    func write(_ record: AccessRecord) { queue.append(.bytes(format.line(record))) }

    /// Waits until all lines are written, at most one second. For the end of the process.
    func flush() { queue.flush(within: .seconds(1)) }
}

/// Format of access records. Text of callers is escaped, so that each line is one record.
enum AccessFormat: Sendable {
    /// The combined log format, followed by `key=value` pairs for all other values.
    case common
    /// One JSON object per line.
    case json

    /// Returns a record as a line with its newline.
    func line(_ record: AccessRecord) -> [UInt8] {
        Array((self == .common ? Self.common(record) : Self.json(record)).utf8)
    }

    // MARK: Common

    private static func common(_ record: AccessRecord) -> String {
        var text = "\(record.caller ?? "unix:") - \(record.name ?? record.user.map { "\($0)" } ?? "-") "
        text += "[\(LogTime(milliseconds: record.time).commonText)] "
        if record.method.isEmpty {
            text += "\"-\""
        } else {
            let query = record.query.map { "?\($0)" } ?? ""
            quote(
                "\(record.method) \(record.path.isEmpty ? "*" : record.path)\(query) HTTP/\(record.version)", to: &text)
        }
        text += " \(record.status) \(record.bytes) "
        quote(record.referer ?? "-", to: &text)
        text += " "
        quote(record.userAgent ?? "-", to: &text)
        text += " host="
        quote(record.host, to: &text)
        text += " listener=\(record.listener) upstream=\(record.upstream ?? "-") code=\(record.code ?? "-")"
        text += " challenge=\(record.challenge ?? "-") seconds=\(seconds(record.duration))"
        text += " upstream_seconds=\(record.upstreamDuration.map(seconds) ?? "-")"
        text += " aborted=\(record.isAborted) exchange_id=\(record.exchangeID)\n"
        return text
    }

    private static func quote(_ value: String, to text: inout String) {
        text += "\""
        LogEscape.append(value, to: &text)
        text += "\""
    }

    // MARK: JSON

    private static func json(_ record: AccessRecord) -> String {
        var text = "{\"time\":\"\(LogTime(milliseconds: record.time).text)\""
        func add(_ key: String, _ value: String?) {
            guard let value else { return }
            text += ",\"\(key)\":"
            LogEscape.appendJSON(value, to: &text)
        }
        add("exchange_id", record.exchangeID)
        add("listener", record.listener)
        add("caller", record.caller)
        add("caller_name", record.name)
        if let user = record.user { text += ",\"caller_uid\":\(user)" }
        if !record.method.isEmpty {
            add("method", record.method)
            add("path", record.path)
            add("query", record.query)
            add("host", record.host)
            add("version", record.version)
        }
        text += ",\"status\":\(record.status),\"bytes\":\(record.bytes),\"aborted\":\(record.isAborted)"
        add("code", record.code)
        add("upstream", record.upstream)
        add("challenge", record.challenge)
        text += ",\"seconds\":\(seconds(record.duration))"
        if let upstream = record.upstreamDuration { text += ",\"upstream_seconds\":\(seconds(upstream))" }
        add("referer", record.referer)
        add("user_agent", record.userAgent)
        return text + "}\n"
    }

    /// Returns nanoseconds as seconds with six decimals.
    private static func seconds(_ nanoseconds: UInt64) -> String {
        let digits = String(nanoseconds / 1_000 % 1_000_000)
        return "\(nanoseconds / 1_000_000_000).\(String(repeating: "0", count: 6 - digits.utf8.count))\(digits)"
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The lifetime of one connection: read a request, have it answered, write the answer, and again.
struct ConnectionLoop: Sendable {
    var connection: Connection
    var idle: Duration
    var recorder: Recorder
    var inWork: InWork
    var handler: @Sendable (FakeRequest) -> FakeResponse

    private static let numbers = Atomic<UInt64>(0)

    func run() {
        var reader = RequestReader(connection, idle: idle)
        do throws(Connection.End) {
            let number = Self.numbers.add(1, ordering: .relaxed).newValue
            while let (read, staysOpen) = try reader.next() {
                var request = read
                request.connection = number
                let remarks = reader.remarks.map { "\(request.method) \(request.path): \($0)" }
                if !remarks.isEmpty { recorder.note { $0.violations += remarks } }
                guard try answer(request, staysOpen: staysOpen) else { return connection.closeGently() }
            }
        } catch {
            switch error {
            case .gone:
                if reader.isInside { recorder.note { $0.unfinishedRequests += 1 } }
            case .wrong(let problem): refuse(problem)
            }
        }
    }

    private func refuse(_ problem: String) {
        recorder.note { $0.violations.append("no request: \(problem)") }
        var writer = ResponseWriter(connection)
        try? writer.write(.text(400, "\(problem)\n"), to: "GET", date: now, staysOpen: false)
        connection.closeGently()
    }

    /// Answers one request; `false` if the connection ends with the answer.
    private func answer(_ request: FakeRequest, staysOpen: Bool) throws(Connection.End) -> Bool {
        inWork.enter(request.path, recorder)
        defer { inWork.leave(request.path) }
        let response = handler(request)
        let closes =
            switch response.body {
            case .raw, .untilClose: true
            case .bytes, .chunks, .generated: response.delivery.closes || !staysOpen
            }
        var writer = ResponseWriter(connection)
        do {
            try writer.write(response, to: request.method, date: now, staysOpen: !closes)
        } catch {
            if response.delivery.cutsAfter == nil { recorder.note { $0.abandonedAnswers += 1 } }
            throw .gone
        }
        return !closes
    }

    private var now: String { httpDate(FakeClock.system.now()) }
}

/// Number of requests in progress, by path and in all.
final class InWork: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func enter(_ path: String, _ recorder: Recorder) {
        let (all, here) = counts.withLock { counts in
            counts["*", default: 0] += 1
            counts[path, default: 0] += 1
            return (counts["*"] ?? 0, counts[path] ?? 0)
        }
        recorder.note { record in
            record.maxConcurrent["*"] = max(record.maxConcurrent["*"] ?? 0, all)
            // Limited, so that requests for ever new paths do not fill the memory.
            guard record.maxConcurrent.count < 1000 || record.maxConcurrent[path] != nil else { return }
            record.maxConcurrent[path] = max(record.maxConcurrent[path] ?? 0, here)
        }
    }

    func leave(_ path: String) {
        counts.withLock { counts in
            counts["*", default: 1] -= 1
            counts[path, default: 1] -= 1
            if counts[path] == 0 { counts[path] = nil }
        }
    }
}

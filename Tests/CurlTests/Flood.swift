// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Testing

extension Client {
    /// Runs so many transfers, 64 at a time, and fails the test if any of them did.
    func flood(_ url: String, total: Int) async throws {
        let driver = try driver()
        var work: Work?
        await withCheckedContinuation { done in
            work = Work(url, total: total, driver: driver) { done.resume() }
        }
        #expect(work?.failures == 0)
    }
}

/// Counts the delegates that are alive.
final class Census: @unchecked Sendable {
    // Touched on the client's loop only, and read after it has come to rest.
    static let alive = Census()
    var count = 0
}

/// A delegate that swallows all and starts its transfer again until the work is done.
private final class Worker: TransferDelegate {
    private let work: Work
    private var served = 0

    init(_ work: Work) {
        self.work = work
        Census.alive.count += 1
    }

    deinit { Census.alive.count -= 1 }

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .consumed }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .end }
    func transferRewinds(to offset: Int64) -> Bool { true }
    func transferWillSend(attempt: Int) -> Bool { true }

    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        if error != nil { work.failures += 1 }
        served += 1
        // Now and then everything is made anew, so that handles and delegates come and go by the thousand too.
        work.next(handle, served % 10 == 0 ? nil : self)
    }
}

/// So many transfers, 64 at a time.
private final class Work {
    private let url: String
    private let driver: Driver
    private let onEnd: () -> Void
    private var left: Int
    private var active = 0
    var failures = 0

    init(_ url: String, total: Int, driver: Driver, onEnd: @escaping () -> Void) {
        self.url = url
        self.driver = driver
        self.onEnd = onEnd
        left = total
        for _ in 0..<64 { begin(nil, nil) }
    }

    func next(_ handle: EasyHandle, _ worker: Worker?) {
        active -= 1
        begin(worker == nil ? nil : handle, worker)
        if active == 0 { onEnd() }
    }

    private func begin(_ handle: EasyHandle?, _ worker: Worker?) {
        guard left > 0 else { return }
        left -= 1
        active += 1
        do {
            let ready = try handle ?? EasyHandle()
            if handle == nil {
                try ready.set(.url, url)
                let list = HeaderList()
                try list.append(name: "X-Number", value: "\(left)")
                try ready.set(.httpHeader, list)
            }
            try driver.start(ready, worker ?? Worker(self))
        } catch {
            failures += 1
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Synchronization
import Testing

@testable import ChallengeClient

@Suite("The pipe of a response's body")
struct BodyPipeTests {
    private final class Calls: Sendable {
        private let calls = Mutex<[BodyPipe.Call]>([])

        var count: Int { calls.withLock { $0.count } }
        var last: BodyPipe.Call? { calls.withLock { $0.last } }

        func add(_ call: BodyPipe.Call) { calls.withLock { $0.append(call) } }
    }

    private func pipe() -> (BodyPipe, Calls) {
        let calls = Calls()
        return (BodyPipe { calls.add($0) }, calls)
    }

    @Test("bytes put into a pipe come out, and then the end")
    func order() async throws {
        let (pipe, calls) = pipe()
        pipe.put([1, 2])
        pipe.put([3])
        pipe.finish(.success(()))
        #expect(try await pipe.next().get() == [1, 2, 3])
        #expect(try await pipe.next().get() == nil)
        #expect(calls.count == 0)
    }

    @Test("an error of a pipe comes after the bytes put in before it")
    func error() async throws {
        let (pipe, _) = pipe()
        pipe.put([1])
        pipe.finish(.failure(.shutDown))
        #expect(try await pipe.next().get() == [1])
        #expect(await pipe.next() == .failure(.shutDown))
    }

    @Test("a full pipe reports room again, once")
    func room() async throws {
        let (pipe, calls) = pipe()
        #expect(pipe.hasRoom)
        pipe.put(Array(repeating: 0, count: 70_000))
        #expect(!pipe.hasRoom)
        #expect(calls.count == 0)
        #expect(try await pipe.next().get()?.count == 70_000)
        #expect(calls.last == .room && calls.count == 1)
        #expect(pipe.hasRoom)
    }

    @Test("a reader who wants no more says so once, and reads no more")
    func breakOff() async throws {
        let (pipe, calls) = pipe()
        pipe.put([1])
        pipe.breakOff()
        pipe.breakOff()
        #expect(calls.last == .broken && calls.count == 1)
        #expect(pipe.isBroken)
        await #expect(throws: ClientError.self) { try await pipe.next().get() }
    }

    @Test("a second reader at once is refused, and the first one goes on")
    func twoReaders() async throws {
        let (pipe, _) = pipe()
        let results = await withTaskGroup(of: Result<[UInt8]?, ClientError>.self) { group in
            for _ in 0..<2 { group.addTask { await pipe.next() } }
            let first = await group.next()
            pipe.put([7])
            return [first, await group.next()]
        }
        #expect(results.contains(.success([7])))
        #expect(results.contains { if case .failure(let error)? = $0 { error.kind == .badRequest } else { false } })
    }

    @Test("no byte of a pipe is lost between a thread that fills and a task that reads")
    func concurrent() async throws {
        let (pipe, _) = pipe()
        let total = 200_000
        let filling = Task.detached {
            var sent = 0
            while sent < total {
                guard pipe.hasRoom else {
                    await Task.yield()
                    continue
                }
                pipe.put((0..<100).map { UInt8(truncatingIfNeeded: sent + $0) })
                sent += 100
            }
            pipe.finish(.success(()))
        }
        var received = 0
        var isInOrder = true
        while let piece = try await pipe.next().get() {
            for byte in piece {
                isInOrder = isInOrder && byte == UInt8(truncatingIfNeeded: received)
                received += 1
            }
        }
        await filling.value
        #expect(received == total)
        #expect(isInOrder)
    }
}

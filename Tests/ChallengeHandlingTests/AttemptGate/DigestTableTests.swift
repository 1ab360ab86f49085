// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Table of records by key and digest", .serialized)
struct DigestTableTests {
    private func key(_ number: Int) -> LatchKey {
        LatchKey(
            origin: Origin(scheme: .https, host: "a.example"), challenge: "corp-\(number % 3)",
            credential: "caller-\(number)")
    }

    /// A list in order, searched from one end to the other.
    private struct Plain {
        var all: [(at: Int64, entry: DigestTable<Int>.Entry)] = []

        mutating func add(_ key: LatchKey, _ digest: [UInt8], _ value: Int, at: Int64) {
            remove(key, digest)
            let index = all.lastIndex { $0.at <= at }.map { $0 + 1 } ?? 0
            all.insert((at, .init(key: key, digest: digest, value: value)), at: index)
            if all.count(where: { $0.entry.key == key }) > 16,
                let first = all.firstIndex(where: { $0.entry.key == key })
            {
                all.remove(at: first)
            }
            if all.count > 1_024 { all.removeFirst() }
        }

        mutating func remove(_ key: LatchKey, _ digest: [UInt8]) {
            all.removeAll { $0.entry.key == key && $0.entry.digest == digest }
        }
    }

    @Test(
        "a table has the same records in the same order as a list that is searched", arguments: 0..<4 as Range<UInt64>)
    func plain(seed: UInt64) {
        var chance = SplitMix(state: seed)
        func below(_ limit: Int) -> Int { Int(chance.next() % UInt64(limit)) }
        let keys = [2, 40, 400, 400][Int(seed)]
        var (table, list) = (DigestTable<Int>(), Plain())
        for step in 0..<1_800 {
            let (key, digest) = (key(below(keys)), [UInt8(below(20))])
            switch below(12) {
            case 0:
                table.remove(key, digest: digest)
                list.remove(key, digest)
            case 1:
                table.change(key, digest: digest) { $0 += 1 }
                for index in list.all.indices
                where list.all[index].entry.key == key && list.all[index].entry.digest == digest {
                    list.all[index].entry.value += 1
                }
            case 2 where below(100) == 0:
                table.removeAll { $0.value.isMultiple(of: 3) }
                list.all.removeAll { $0.entry.value.isMultiple(of: 3) }
            default:
                let at = seed.isMultiple(of: 2) ? 0 : Int64(below(50))
                table.add(key, digest: digest, step, at: at)
                list.add(key, digest, step, at: at)
            }
            let known = list.all.first { $0.entry.key == key && $0.entry.digest == digest }?.entry.value
            #expect(table[key, digest] == known && table.count == list.all.count)
            guard step.isMultiple(of: 50) else { continue }
            #expect(table.entries == list.all.map(\.entry))
            let own = list.all.map(\.entry).filter { $0.key.credential == key.credential }
            #expect(table.entries(ofCredential: key.credential) == own)
        }
    }

    @Test("N records of N credentials are added, looked up, written, read and merged in N times the time of one")
    func growth() {
        let isLinear = growsLinearly(from: 120) { count in
            var table = AcceptanceTable()
            for number in 0..<count {
                table.accept(key(number), digest: [1, 2], Acceptance(path: "/a", at: 1))
                _ = table.acceptance(key(number), digest: [1, 2])
                _ = table.forms(ofCredential: "caller-\(number)")
            }
            table.merge(table)
            var latches = LatchTable()
            for number in 0..<count {
                latches.close(key(number), digest: [1], Latch(reason: .rejected, closedAt: Int64(number)))
                _ = latches.closedLatch(key(number), digest: [1], now: 9)
            }
            #expect(AcceptanceTable(parsing: table.serialized()) == table && table.count == count)
            #expect(LatchTable(parsing: latches.serialized()) == latches)
        }
        #expect(isLinear)
    }
}

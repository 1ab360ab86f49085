// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import System

@Suite("The process")
struct ProcessTests {
    @Test("the clocks agree with those of the standard library, and monotonic ones do not go back")
    func clocks() {
        let before = time(nil)
        let now = SystemClock.wallClock() / 1000
        #expect((Int64(before)...Int64(time(nil))).contains(now))
        let first = SystemClock.monotonicNanoseconds()
        #expect(SystemClock.monotonicNanoseconds() >= first)
        #expect(SystemClock.bootNanoseconds() >= first)
    }

    @Test(
        "a deadline lies in the future by its limit, at most a century, and never in the past",
        arguments: [(.seconds(-1), 0), (.zero, 0), (.seconds(60), 60), (.seconds(Int64.max), 100 * 366 * 86_400)]
            as [(Duration, Int)])
    func deadlines(limit: Duration, seconds: Int) {
        let before = Int(SystemClock.monotonicNanoseconds() / 1_000_000_000)
        let deadline = SystemClock.deadline(after: limit)
        let after = Int(SystemClock.monotonicNanoseconds() / 1_000_000_000)
        #expect((before + seconds...after + seconds + 1).contains(deadline.tv_sec))
        #expect((0..<1_000_000_000).contains(deadline.tv_nsec))
    }

    @Test("a duration for poll is rounded up, and at most what it takes")
    func pollTimeouts() {
        #expect(Duration.microseconds(1).pollTimeout == 1 && Duration.seconds(-1).pollTimeout == 0)
        #expect(Duration.seconds(Int64.max).pollTimeout == .max)
        let time = (Duration.seconds(2) + .nanoseconds(7)).timespec
        #expect(time.tv_sec == 2 && time.tv_nsec == 7)
    }

    @Test("an error has the system's message, and so has an unknown number")
    func errors() {
        #expect(SystemError(code: ENOENT).description == "No such file or directory")
        #expect(SystemError.message(-1).contains("-1"))
    }

    @Test("the environment is read variable by variable, and as a whole")
    func environment() {
        #expect(Environment.value(of: "PATH") == Environment.all["PATH"])
        #expect(Environment.value(of: "COUNTERSIGN_NO_SUCH_VARIABLE") == nil)
    }

    @Test("users are found by their names")
    func users() throws {
        #expect(try Users.uid(named: "root") == 0)
        #expect(try Users.uid(named: "no such user") == nil)
    }

    @Test(
        "only mappings of code in files are reported",
        arguments: [
            ("5500-5600 r-xp 00001000 08:01 42 /usr/bin/x", 0x5500..<0x5600), ("5500-5600 r--p 0 08:01 42 /x", nil),
            ("5500-5600 r-xp 0 00:00 0 [vdso]", nil), ("5600-5500 r-xp 0 08:01 42 /x", nil), ("", nil),
            ("5500 r-xp 0 08:01 42 /x", nil), ("zz-5600 r-xp 0 08:01 42 /x", nil),
        ] as [(String, Range<UInt>?)])
    func mappings(line: String, range: Range<UInt>?) {
        #expect(ProcessMemory.codeRange(line[...]) == range)
    }

    @Test("the resources that the process uses are reported")
    func usage() throws {
        let memory = ProcessUsage.memory()
        #expect(memory.resident > 0 && memory.virtual >= memory.resident)
        #expect(ProcessUsage.processorNanoseconds() > 0)
        #expect(try #require(ProcessUsage.openDescriptors()) > 2)
        let limit = try #require(OpenFileLimit.current)
        #expect(limit.soft <= limit.hard)
    }

    @Test("the limit of open files is raised, and programs are started with the one from before")
    func openFiles() throws {
        let before = try #require(OpenFileLimit.current)
        OpenFileLimit.raise()
        #expect(OpenFileLimit.current?.soft == before.hard)
        #expect(OpenFileLimit.withOriginal { OpenFileLimit.current?.soft } ?? 0 <= before.soft)
        #expect(OpenFileLimit.current?.soft == before.hard)
    }
}

@Suite("The users of processes")
struct ProcessOwnerTests {
    @Test("the real user of a process is read from its status")
    func processOwner() {
        #expect(ProcessOwner.uid(in: "Name:\tUid:\nUid:\t4711\t0\t0\t0\nGid:\t1\t1\t1\t1\n") == 4711)
        #expect(ProcessOwner.uid(in: "Name:\tx\n") == nil)
        #expect(ProcessOwner.uid(of: getpid()) == getuid())
        #expect(ProcessOwner.uid(of: 0x7FFF_FFFF) == nil)
    }
}

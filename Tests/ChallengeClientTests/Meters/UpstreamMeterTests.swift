// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Testing

@Suite("The counters of an upstream")
struct UpstreamMeterTests {
    @Test("each status of three digits is counted for itself, whatever else an upstream says as one")
    func statuses() {
        let meter = UpstreamMeter(name: "bank")
        for status in [200, 200, 404, 100, 599, 600, 999, 99, -1, .max] {
            meter.ended(.response(status: status), whole: 1, own: 1)
        }
        let counts = Dictionary(uniqueKeysWithValues: meter.reading.responses.map { ($0.status, $0.count) })
        #expect(counts == [200: 2, 404: 1, 100: 1, 599: 1, UpstreamReading.otherStatus: 5])
        #expect(meter.reading.whole.count == 10)
    }

    @Test("an exchange that was cut off has no duration, and a broken response has its status")
    func cutOff() {
        let meter = UpstreamMeter(name: "bank")
        meter.ended(.callerLost, whole: 5, own: 5)
        meter.ended(.broken(status: 206), whole: 5, own: 5)
        meter.ended(.localReply, whole: 7, own: 3)
        let reading = meter.reading
        #expect(reading.lostCallers == 1 && reading.brokenResponses == 1)
        #expect(reading.responses.map(\.status) == [206])
        #expect(reading.whole.count == 1 && reading.whole.nanoseconds == 7 && reading.own.nanoseconds == 3)
    }

    @Test("the counts of two workers add up, and an earlier reading does not change")
    func sums() {
        let (one, other) = (UpstreamMeter(name: "bank"), UpstreamMeter(name: "bank"))
        one.ended(.response(status: 200), whole: 10, own: 1)
        let before = one.reading
        one.ended(.response(status: 200), whole: 10, own: 1)
        other.ended(.response(status: 200), whole: 10, own: 1)
        #expect(before.responses.map(\.count) == [1])
        var sum = one.reading
        sum.add(other.reading)
        #expect(sum.responses.map(\.count) == [3])
        #expect(sum.whole.count == 3)
    }
}

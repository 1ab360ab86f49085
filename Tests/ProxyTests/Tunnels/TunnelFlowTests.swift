// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Proxy
import Testing

@Suite("One direction of a tunnel")
struct TunnelFlowTests {
    @Test("a tunnel's buffer is filled only when empty, and its end is due after all bytes")
    func course() {
        var flow = TunnelFlow()
        #expect(flow.wantsSource && !flow.wantsSink && flow.canMove && !flow.owesEnd)
        flow.bytes.append("some")
        #expect(!flow.wantsSource && flow.wantsSink && flow.canMove)
        flow.sinkIsReady = false
        #expect(flow.canMove == false)
        flow.end()
        #expect(flow.owesEnd == false)
        flow.bytes.consume(4)
        #expect(flow.owesEnd && !flow.wantsSource && !flow.canMove)
        flow.passEnd()
        #expect(!flow.owesEnd && flow.endIsPassed)
    }

    @Test("no byte of a tunnel moves while its source has none")
    func idle() {
        var flow = TunnelFlow()
        flow.sourceIsReady = false
        #expect(flow.wantsSource == true && flow.canMove == false)
    }

    @Test("a tunnel reads much from a busy source, and an idle direction keeps little memory")
    func memory() {
        var flow = TunnelFlow()
        #expect(flow.appetite == TunnelFlow.keptMemory)
        flow.received(flow.appetite, of: flow.appetite)
        #expect(flow.appetite == TunnelFlow.window)
        flow.bytes.append([UInt8](repeating: 1, count: TunnelFlow.window))
        flow.shrink()
        #expect(flow.bytes.count == TunnelFlow.window)
        flow.bytes.consume(TunnelFlow.window)
        flow.received(10, of: flow.appetite)
        #expect(flow.appetite == TunnelFlow.keptMemory)
        flow.shrink()
        #expect(flow.bytes.capacity <= TunnelFlow.keptMemory)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// A request's fields as libcurl wants them: a linked list of lines, which it does not copy.
///
/// All lines lie in one block of memory and all nodes in another, and both are used again after `reset`, so that a
/// request costs no allocation per field. Since fields carry credentials, the lines are overwritten when they go.
///
/// A list can be filled and reset while no transfer uses it.
@safe
package final class HeaderList {
    /// How many lines there are.
    package private(set) var count = 0
    /// How many bytes of memory they take.
    package private(set) var byteCount = 0
    /// Changes with every change, so that a handle knows when to look again.
    private(set) var version: UInt64 = 1
    /// How many transfers under way use the list.
    var users = 0

    private var bytes: UnsafeMutableRawPointer
    private var byteCapacity = 1024
    private var nodes: UnsafeMutablePointer<curl_slist>
    private var nodeCapacity = 32
    private var lines: [Line] = []

    private struct Line {
        enum Kind { case field, empty, suppressed }

        /// Where in `bytes` it begins; the nodes point there only once `sealed` has been called.
        var start: Int
        var kind: Kind
    }

    /// An empty list.
    package init() {
        unsafe bytes = .allocate(byteCount: byteCapacity, alignment: 1)
        unsafe nodes = .allocate(capacity: nodeCapacity)
    }

    deinit {
        unsafe explicit_bzero(bytes, byteCount)
        unsafe bytes.deallocate()
        unsafe nodes.deallocate()
    }

    /// Takes all lines out and keeps the memory.
    package func reset() {
        changing()
        unsafe explicit_bzero(bytes, byteCount)
        byteCount = 0
        count = 0
        lines.removeAll(keepingCapacity: true)
    }

    /// Adds `name: value`, also for an empty value.
    ///
    /// Throws `badFunctionArgument` for what could end the line or be taken for one of libcurl's own notations: CR, LF
    /// and NUL in a value (RFC 9110 §5.5), anything but visible characters, and `:` or `;`, in a name (§5.1).
    package func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) throws(CurlError) {
        guard unsafe isName(name), let content = unsafe Content(value) else { throw .badFunctionArgument }
        // Of a value without a visible sign nothing is sent but the name.
        let length = content == .blank ? 1 : 2 + value.count
        let room = unsafe addLine(name.count + length, content == .blank ? .empty : .field)
        unsafe room.copyMemory(from: name)
        switch content {
        case .blank:
            // libcurl takes a colon with nothing after it for "send no such field"; this is how to send an empty one.
            unsafe room[name.count] = semicolon
        case .some:
            unsafe room[name.count] = colon
            unsafe room[name.count + 1] = space
            unsafe UnsafeMutableRawBufferPointer(rebasing: room[(name.count + 2)...]).copyMemory(from: value)
        }
    }

    /// Adds `name: value`.
    package func append(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        try unsafe name.withUnsafeBytes { name throws(CurlError) in
            try unsafe value.withUnsafeBytes { value throws(CurlError) in
                try unsafe append(name: name, value: value)
            }
        }
    }

    /// Adds `name: value`.
    package func append(name: StaticString, value: Span<UInt8>) throws(CurlError) {
        let name = unsafe text(name)
        try unsafe value.withUnsafeBytes { value throws(CurlError) in try unsafe append(name: name, value: value) }
    }

    /// Adds `name: value`.
    package func append(name: StaticString, value: StaticString) throws(CurlError) {
        try unsafe append(name: text(name), value: text(value))
    }

    /// Adds `name: value`.
    package func append(name: String, value: String) throws(CurlError) {
        try append(name: name.utf8.span, value: value.utf8.span)
    }

    /// Has libcurl leave out a field that it would send of its own accord: `Accept`, `Expect`, `Content-Type`.
    package func suppress(_ name: StaticString) {
        let name = unsafe text(name)
        let room = unsafe addLine(name.count + 1, .suppressed)
        unsafe room.copyMemory(from: name)
        unsafe room[name.count] = colon
    }

    /// Shows `body` each field that is sent, in their order, for whoever writes the request itself: its line, `name: value`, or
    /// its name alone where the value is empty.
    package func forEachField<Failure>(
        _ body: (_ line: Span<UInt8>, _ isEmpty: Bool) throws(Failure) -> Void
    ) throws(Failure) {
        for index in lines.indices where lines[index].kind != .suppressed {
            let isEmpty = lines[index].kind == .empty
            // Before the next line, or the end, there is a NUL; and before that the sign of an empty value.
            let end = (index + 1 < lines.count ? lines[index + 1].start : byteCount) - (isEmpty ? 2 : 1)
            let start = lines[index].start
            let line = unsafe Span<UInt8>(
                _unsafeElements: UnsafeBufferPointer(
                    start: (bytes + start).assumingMemoryBound(to: UInt8.self), count: end - start))
            try body(line, isEmpty)
        }
    }

    /// The list as libcurl takes it. It holds until the next change.
    func sealed() -> UnsafeMutablePointer<curl_slist>? {
        guard count > 0 else { return nil }
        let text = unsafe bytes.assumingMemoryBound(to: CChar.self)
        for index in 0..<count {
            let next = unsafe index + 1 < count ? nodes + (index + 1) : nil
            unsafe (nodes + index).initialize(to: curl_slist(data: text + lines[index].start, next: next))
        }
        return unsafe nodes
    }

    // MARK: Memory

    /// Room for a line of that length, its NUL already behind it.
    private func addLine(_ length: Int, _ kind: Line.Kind) -> UnsafeMutableRawBufferPointer {
        changing()
        if byteCount + length + 1 > byteCapacity { growBytes(to: byteCount + length + 1) }
        if count == nodeCapacity { growNodes() }
        let room = unsafe UnsafeMutableRawBufferPointer(start: bytes + byteCount, count: length)
        unsafe (bytes + byteCount).storeBytes(of: 0, toByteOffset: length, as: UInt8.self)
        lines.append(Line(start: byteCount, kind: kind))
        byteCount += length + 1
        count += 1
        return unsafe room
    }

    private func changing() {
        // libcurl reads the list while a transfer runs: changing it then would pull the memory from under it.
        precondition(users == 0, "a HeaderList was changed while a transfer uses it")
        version &+= 1
    }

    private func growBytes(to needed: Int) {
        let capacity = max(byteCapacity * 2, needed)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
        unsafe larger.copyMemory(from: bytes, byteCount: byteCount)
        unsafe explicit_bzero(bytes, byteCount)
        unsafe bytes.deallocate()
        unsafe bytes = larger
        byteCapacity = capacity
    }

    private func growNodes() {
        // Not copied: `sealed` writes them all.
        unsafe nodes.deallocate()
        nodeCapacity *= 2
        unsafe nodes = .allocate(capacity: nodeCapacity)
    }
}

private let colon = UInt8(ascii: ":")
private let semicolon = UInt8(ascii: ";")
private let space = UInt8(ascii: " ")

/// What a value amounts to.
private enum Content {
    case blank
    case some

    /// `nil` for a value that may not go out. Written without a way out of the loop, so that it becomes vector code.
    init?(_ value: UnsafeRawBufferPointer) {
        var bad: UInt8 = 0
        var visible: UInt8 = 0
        for index in 0..<value.count {
            let byte = unsafe value[index]
            bad |= byte == 0 ? 1 : 0
            bad |= byte == 10 ? 1 : 0
            bad |= byte == 13 ? 1 : 0
            visible |= byte == 32 || byte == 9 ? 0 : 1
        }
        if bad != 0 { return nil }
        self = visible == 0 ? .blank : .some
    }
}

private func isName(_ name: UnsafeRawBufferPointer) -> Bool {
    var isGood = name.count > 0
    for index in 0..<name.count {
        let byte = unsafe name[index]
        isGood = isGood && byte > 32 && byte < 127 && byte != colon && byte != semicolon
    }
    return isGood
}

private func text(_ text: StaticString) -> UnsafeRawBufferPointer {
    precondition(text.hasPointerRepresentation)
    return unsafe UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
}

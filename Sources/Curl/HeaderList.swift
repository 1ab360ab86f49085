// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// Fields of a request as libcurl expects them: a linked list of lines, which libcurl does not copy.
///
/// All lines are in one block of memory and all nodes in another. Both are reused after `reset`, so that a request
/// costs no allocation per field. Fields carry credentials, so the lines are overwritten when they are removed.
///
/// A list may be changed only while no transfer uses it.
@safe
package final class HeaderList {
    private var lines = HeaderLines()
    /// Incremented with every change, so that a handle can detect changes.
    private(set) var version: UInt64 = 1
    /// Number of current transfers that use the list.
    var users = 0

    private var nodes: UnsafeMutablePointer<curl_slist>
    private var nodeCapacity = 32

    /// Creates an empty list.
    package init() { unsafe nodes = .allocate(capacity: nodeCapacity) }

    deinit { unsafe nodes.deallocate() }

    /// Number of lines.
    package var count: Int { lines.starts.count }

    /// Removes all lines but retains the memory.
    package func reset() {
        changing()
        lines.removeAll()
    }

    /// Adds `name: value`, also with an empty value.
    ///
    /// Throws `badFunctionArgument` for bytes that could end the line or mean something else to libcurl: CR, LF and NUL
    /// in a value (RFC 9110 §5.5), and in a name everything but visible characters, and `:` and `;` (RFC 9110 §5.1).
    package func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) throws(CurlError) {
        changing()
        try unsafe lines.append(name: name, value: value)
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

    /// Suppresses a field that libcurl would add: `Accept`, `Expect`, `Content-Type`.
    package func suppress(_ name: StaticString) {
        changing()
        unsafe lines.suppress(text(name))
    }

    /// Returns libcurl's form of the list, valid until the next change.
    func sealed() -> UnsafeMutablePointer<curl_slist>? {
        let count = count
        guard count > 0 else { return nil }
        if count > nodeCapacity { growNodes(to: count) }
        let text = unsafe lines.bytes.assumingMemoryBound(to: CChar.self)
        for index in 0..<count {
            let next = unsafe index + 1 < count ? nodes + (index + 1) : nil
            unsafe (nodes + index).initialize(to: curl_slist(data: text + lines.starts[index], next: next))
        }
        return unsafe nodes
    }

    private func changing() {
        // libcurl reads the list during a transfer: changing the list then would free memory in use.
        precondition(users == 0, "a HeaderList was changed while a transfer uses it")
        version &+= 1
    }

    private func growNodes(to needed: Int) {
        // Not copied, because `sealed` writes all nodes.
        unsafe nodes.deallocate()
        nodeCapacity = max(nodeCapacity * 2, needed)
        unsafe nodes = .allocate(capacity: nodeCapacity)
    }
}

private func text(_ text: StaticString) -> UnsafeRawBufferPointer {
    precondition(text.hasPointerRepresentation)
    return unsafe UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
}

/// Lines of a `HeaderList` in one block of memory, reused after `removeAll`.
///
/// Fields carry credentials, so the lines are overwritten when they are removed. A value type, so that adding a field
/// costs the owning list one exclusivity check, not one per changed property.
@safe
struct HeaderLines: ~Copyable {
    private(set) var bytes: UnsafeMutableRawPointer
    private(set) var byteCount = 0
    /// Start of each line in `bytes`.
    private(set) var starts: [Int] = []
    private var capacity = 1024

    init() { unsafe bytes = .allocate(byteCount: capacity, alignment: 1) }

    deinit {
        unsafe explicit_bzero(bytes, byteCount)
        unsafe bytes.deallocate()
    }

    mutating func removeAll() {
        unsafe explicit_bzero(bytes, byteCount)
        byteCount = 0
        starts.removeAll(keepingCapacity: true)
    }

    /// Adds a line; see `HeaderList.append(name:value:)`.
    mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) throws(CurlError) {
        guard unsafe isName(name), let content = unsafe Content(value) else { throw .badFunctionArgument }
        // Only the name is sent if the value has no visible character.
        let length = content == .blank ? 1 : 2 + value.count
        let room = unsafe add(name.count + length)
        unsafe room.copyMemory(from: name)
        switch content {
        case .blank:
            // libcurl reads a colon without a value as "do not send this field"; a semicolon sends an empty field.
            unsafe room[name.count] = semicolon
        case .some:
            unsafe room[name.count] = colon
            unsafe room[name.count + 1] = space
            unsafe UnsafeMutableRawBufferPointer(rebasing: room[(name.count + 2)...]).copyMemory(from: value)
        }
    }

    /// Adds a line that suppresses a field; see `HeaderList.suppress(_:)`.
    mutating func suppress(_ name: UnsafeRawBufferPointer) {
        let room = unsafe add(name.count + 1)
        unsafe room.copyMemory(from: name)
        unsafe room[name.count] = colon
    }

    /// Reserves a line of that length, followed by a NUL.
    private mutating func add(_ length: Int) -> UnsafeMutableRawBufferPointer {
        if byteCount + length + 1 > capacity { grow(to: byteCount + length + 1) }
        let room = unsafe UnsafeMutableRawBufferPointer(start: bytes + byteCount, count: length)
        unsafe (bytes + byteCount).storeBytes(of: 0, toByteOffset: length, as: UInt8.self)
        starts.append(byteCount)
        byteCount += length + 1
        return unsafe room
    }

    private mutating func grow(to needed: Int) {
        capacity = max(capacity * 2, needed)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
        unsafe larger.copyMemory(from: bytes, byteCount: byteCount)
        unsafe explicit_bzero(bytes, byteCount)
        unsafe bytes.deallocate()
        unsafe bytes = larger
    }
}

private let colon = UInt8(ascii: ":")
private let semicolon = UInt8(ascii: ";")
private let space = UInt8(ascii: " ")

/// Kind of a field value.
private enum Content {
    case blank
    case some

    /// Classifies a value; nil if it must not be sent.
    init?(_ value: UnsafeRawBufferPointer) {
        var index = 0
        var isVisible = false
        while index < value.count {
            if index &+ 8 <= value.count {
                // A word without a byte below 0x20 or above 0x7F has none of these characters. A high bit flags such a
                // byte or the byte above it.
                let word = unsafe value.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                if ((word &- 0x2020_2020_2020_2020) | word) & 0x8080_8080_8080_8080 == 0 {
                    isVisible = isVisible || word != 0x2020_2020_2020_2020
                    index &+= 8
                    continue
                }
            }
            let byte = unsafe value[index]
            if byte == 0 || byte == 10 || byte == 13 { return nil }
            isVisible = isVisible || byte != space && byte != 9
            index &+= 1
        }
        self = isVisible ? .some : .blank
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

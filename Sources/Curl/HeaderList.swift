// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// A request's fields as libcurl wants them: a linked list of lines, which it does not copy.
///
/// All lines lie in one block of memory and all nodes in another, and both are used again after `reset`, so that a
/// request costs no allocation per field. Since fields carry credentials, the lines are overwritten when they go.
///
/// A list can be filled and reset while no transfer uses it.
@safe
package final class HeaderList {
    private var lines = HeaderLines()
    /// Changes with every change, so that a handle knows when to look again.
    private(set) var version: UInt64 = 1
    /// How many transfers under way use the list.
    var users = 0

    private var nodes: UnsafeMutablePointer<curl_slist>
    private var nodeCapacity = 32

    /// An empty list.
    package init() { unsafe nodes = .allocate(capacity: nodeCapacity) }

    deinit { unsafe nodes.deallocate() }

    /// How many lines there are.
    package var count: Int { lines.starts.count }

    /// Takes all lines out and keeps the memory.
    package func reset() {
        changing()
        lines.removeAll()
    }

    /// Adds `name: value`, also for an empty value.
    ///
    /// Throws `badFunctionArgument` for what could end the line or be taken for one of libcurl's own notations: CR, LF
    /// and NUL in a value (RFC 9110 §5.5), anything but visible characters, and `:` or `;`, in a name (§5.1).
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

    /// Has libcurl leave out a field that it would send of its own accord: `Accept`, `Expect`, `Content-Type`.
    package func suppress(_ name: StaticString) {
        changing()
        unsafe lines.suppress(text(name))
    }

    /// The list as libcurl takes it. It holds until the next change.
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
        // libcurl reads the list while a transfer runs: changing it then would pull the memory from under it.
        precondition(users == 0, "a HeaderList was changed while a transfer uses it")
        version &+= 1
    }

    private func growNodes(to needed: Int) {
        // Not copied: `sealed` writes them all.
        unsafe nodes.deallocate()
        nodeCapacity = max(nodeCapacity * 2, needed)
        unsafe nodes = .allocate(capacity: nodeCapacity)
    }
}

private func text(_ text: StaticString) -> UnsafeRawBufferPointer {
    precondition(text.hasPointerRepresentation)
    return unsafe UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
}

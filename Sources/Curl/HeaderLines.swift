// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The lines of a `HeaderList` in one block of memory, which is used again after `removeAll`. Since fields carry credentials,
/// they are overwritten when they go.
///
/// A value, so that adding a field costs the list that holds it one checked access and not one for each thing that changes.
@safe
struct HeaderLines: ~Copyable {
    private(set) var bytes: UnsafeMutableRawPointer
    private(set) var byteCount = 0
    /// The beginning of each line in `bytes`.
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

    /// See `HeaderList.append(name:value:)`.
    mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) throws(CurlError) {
        guard unsafe isName(name), let content = unsafe Content(value) else { throw .badFunctionArgument }
        // Of a value without a visible sign nothing is sent but the name.
        let length = content == .blank ? 1 : 2 + value.count
        let room = unsafe add(name.count + length)
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

    /// See `HeaderList.suppress(_:)`.
    mutating func suppress(_ name: UnsafeRawBufferPointer) {
        let room = unsafe add(name.count + 1)
        unsafe room.copyMemory(from: name)
        unsafe room[name.count] = colon
    }

    /// Room for a line of that length, its NUL already behind it.
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

/// What a value amounts to.
private enum Content {
    case blank
    case some

    /// `nil` for a value that may not go out.
    init?(_ value: UnsafeRawBufferPointer) {
        var index = 0
        var isVisible = false
        while index < value.count {
            if index &+ 8 <= value.count {
                // In a word without a byte below 0x20 or above 0x7F there is none of those signs. A high bit accuses one, or the
                // byte above it.
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

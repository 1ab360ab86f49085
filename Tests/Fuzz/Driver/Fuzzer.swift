// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

// libFuzzer calls these two. One program holds all targets, and runs the one whose name it is
// called by: `.build/part/fuzz/chunks crash-0123`.

/// Chooses the target by the name of the program.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafePointer<CChar>>>
) -> CInt {
    let path = unsafe String(cString: arguments.pointee[0])
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    unsafe chosen = FuzzTarget.all.first { $0.name == name }
    unsafe spoken = Grammar.all.filter { $0.target == name }
    guard unsafe chosen != nil else {
        print("no target \"\(name)\"; call it by the name of one: \(FuzzTarget.all.map(\.name))")
        exit(64)
    }
    return 0
}

/// Feeds the target one input; what breaks a rule ends the process.
@_cdecl("LLVMFuzzerTestOneInput")
public func feed(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = unsafe Span(_unsafeElements: UnsafeBufferPointer(start: bytes, count: count))
    do throws(Violation) {
        try unsafe chosen?.run(input)
    } catch {
        // What libFuzzer takes for a crash, so that it keeps the input.
        print("\nbroken rule: \(error)")
        fflush(nil)
        abort()
    }
    return 0
}

/// Now and then the next input is a sentence of one of the target's languages; else the last one with some bytes changed.
@_cdecl("LLVMFuzzerCustomMutator")
public func mutate(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int, _ most: Int, _ seed: CUnsignedInt) -> Int {
    guard seed % 16 == 0, let grammar = unsafe spoken.isEmpty ? nil : spoken[Int(seed / 16) % spoken.count] else {
        return unsafe changeBytes(bytes, count, most)
    }
    let sentence = grammar.sentence(UInt64(seed)).prefix(most)
    for (index, byte) in sentence.enumerated() { unsafe bytes[index] = byte }
    return sentence.count
}

@_silgen_name("LLVMFuzzerMutate")
private func changeBytes(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int, _ most: Int) -> Int

/// Where SwiftPM is not told of a sanitizer (`ADDRESS=0`) a program begins here, and not in libFuzzer.
@_cdecl("fuzz_main")
public func begin(
    _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
) -> CInt {
    var count = count
    var arguments = unsafe arguments
    return unsafe drive(&count, &arguments, feed)
}

@_silgen_name("LLVMFuzzerRunDriver")
private func drive(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ feed: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

nonisolated(unsafe) private var chosen: FuzzTarget?
/// The languages of the chosen target.
nonisolated(unsafe) private var spoken: [Grammar] = []

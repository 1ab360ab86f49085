// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

// grammar NAME FIRST SECONDS COUNT   speaks the sentences from that seed on, until one of both is over; 0: no end
// grammar NAME --seed SEED           speaks one sentence, and shows it
// grammar --growth                   holds that each reader's time grows with the length of a text and no faster, and prints what a byte costs
// grammar --names                    prints the languages, each with the target that reads its sentences

let arguments = CommandLine.arguments.dropFirst()
if arguments.first == "--names" {
    for grammar in Grammar.all { print(grammar.name, grammar.target) }
    exit(0)
}
if arguments.first == "--growth" { exit(Run.measureGrowth() ? 0 : 1) }
guard let grammar = Grammar.all.first(where: { $0.name == arguments.first }) else {
    print("no grammar \"\(arguments.first ?? "")\"; there are \(Grammar.all.map(\.name).joined(separator: ", "))")
    exit(64)
}
let numbers = arguments.dropFirst().compactMap { UInt64($0) }
CrashReport.install(for: grammar.name)
if arguments.dropFirst().first == "--seed", let seed = numbers.first {
    print("\(grammar.name) \(seed): \(Run.quoted(grammar.sentence(seed)))")
    fflush(nil)
    exit(Run(grammar, isThorough: true).speak(seed..<(seed + 1)) ? 0 : 1)
}
guard numbers.count == 3 else {
    print("grammar NAME FIRST SECONDS COUNT")
    exit(64)
}
exit(Run(grammar, isThorough: false).speak(from: numbers[0], seconds: numbers[1], count: numbers[2]) ? 0 : 1)

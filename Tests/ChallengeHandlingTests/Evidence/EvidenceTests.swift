// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Verdict on a submitted value")
struct EvidenceTests {
    private static let meanings: [Evidence.Meaning] =
        [.accepted, .unclear] + Evidence.Rejection.allCases.map { .rejected($0) }

    private static func list(_ pieces: [Evidence]) -> EvidenceList {
        pieces.reduce(into: EvidenceList()) { $0.add($1) }
    }

    /// Sources that decide, the strongest first, with what each meaning leads to for a value that was never accepted.
    private static let decisive: [(Evidence.Source, Evidence.Meaning)] = [
        (.configured, .rejected(.wrong)), (.configured, .accepted), (.verifiedAddress, .accepted),
        (.answer, .rejected(.wrong)), (.doubtful, .rejected(.wrong)),
    ]

    @Test("a page that other people write decides nothing, whatever stands there and whatever else was found")
    func foreignPages() {
        for meaning in Self.meanings {
            for wasAccepted in [false, true] {
                let foreign = Evidence(.foreignPage, meaning, "a page")
                guard case .unclear = Self.list([foreign]).verdict(wasAccepted: wasAccepted) else {
                    Issue.record("\(meaning)")
                    continue
                }
                for (source, other) in Self.decisive {
                    let piece = Evidence(source, other, "x")
                    let alone = Self.list([piece]).verdict(wasAccepted: wasAccepted)
                    #expect(Self.list([foreign, piece]).verdict(wasAccepted: wasAccepted) == alone)
                    #expect(Self.list([piece, foreign]).verdict(wasAccepted: wasAccepted) == alone)
                }
            }
        }
    }

    @Test("of two statements the stronger source decides, in any order")
    func ranks() {
        for (index, strong) in Self.decisive.enumerated() {
            for weak in Self.decisive[(index + 1)...] {
                let (a, b) = (Evidence(strong.0, strong.1, "a"), Evidence(weak.0, weak.1, "b"))
                for wasAccepted in [false, true] {
                    let alone = Self.list([a]).verdict(wasAccepted: wasAccepted)
                    #expect(Self.list([a, b]).verdict(wasAccepted: wasAccepted) == alone, "\(a) \(b)")
                    #expect(Self.list([b, a]).verdict(wasAccepted: wasAccepted) == alone, "\(b) \(a)")
                }
            }
        }
    }

    @Test("a fault of this program turns every rejection into an unclear outcome, and no acceptance")
    func ownFaults() {
        let fault = Evidence(.ownFault, .unclear, "a field was not submitted")
        for source in Evidence.Source.allCases where source != .foreignPage && source != .ownFault && source != .hint {
            for rejection in Evidence.Rejection.allCases {
                let pieces = [Evidence(source, .rejected(rejection), "no"), fault]
                #expect(Self.list(pieces).verdict(wasAccepted: false) == .unclear(fault), "\(source)")
            }
            let yes = Evidence(source, .accepted, "yes")
            let (without, with) = (Self.list([yes]), Self.list([yes, fault]))
            if case .accepted = without.verdict(wasAccepted: false) {
                #expect(with.verdict(wasAccepted: false) == .accepted(yes))
            }
        }
    }

    @Test(
        "a value that was accepted before is only doubted by what a right value may meet too, and rejected by the answer itself"
    )
    func doubts() {
        let weak = Evidence(.doubtful, .rejected(.wrong), "the page asks again")
        #expect(Self.list([weak]).verdict(wasAccepted: true) == .doubted(weak))
        #expect(Self.list([weak]).verdict(wasAccepted: false) == .rejected(.wrong, weak))
        for source in [Evidence.Source.answer, .configured] {
            let strong = Evidence(source, .rejected(.wrong), "the form again")
            #expect(Self.list([weak, strong]).verdict(wasAccepted: true) == .rejected(.wrong, strong))
        }
    }

    @Test(
        "new cookies and a redirect decide only for a value that was accepted before, and only where nothing else did")
    func hints() {
        let hint = Evidence(.hint, .accepted, "the answer sets new cookies and redirects")
        #expect(Self.list([hint]).verdict(wasAccepted: true) == .accepted(hint))
        #expect(Self.list([hint]).verdict(wasAccepted: false) == .unclear(hint))
        for (source, meaning) in Self.decisive {
            let piece = Evidence(source, meaning, "x")
            let alone = Self.list([piece]).verdict(wasAccepted: true)
            #expect(Self.list([hint, piece]).verdict(wasAccepted: true) == alone)
        }
    }

    @Test("without evidence the outcome is unclear, and the first statement that says so is named")
    func nothing() {
        #expect(EvidenceList().verdict(wasAccepted: true) == .unclear(nil))
        let status = Evidence(.answer, .unclear, "the answer has status 503")
        #expect(Self.list([status]).verdict(wasAccepted: true) == .unclear(status))
        #expect(
            Self.list([status, Evidence(.hint, .accepted, "cookies")]).verdict(wasAccepted: true) == .unclear(status))
    }

    @Test("every combination of two statements has a verdict that one of them explains")
    func combinations() {
        var count = 0
        let all = Evidence.Source.allCases.flatMap { source in Self.meanings.map { Evidence(source, $0, "\(source)") } }
        for first in all {
            for second in all {
                for wasAccepted in [false, true] {
                    count += 1
                    switch Self.list([first, second]).verdict(wasAccepted: wasAccepted) {
                    case .accepted(let piece):
                        #expect(piece.meaning == .accepted && piece.source != .foreignPage && piece.source != .ownFault)
                        #expect(piece.source != .hint || wasAccepted)
                    case .rejected(let rejection, let piece):
                        #expect(piece.meaning == .rejected(rejection))
                        #expect([.configured, .answer, .doubtful, .verifiedAddress].contains(piece.source))
                        #expect(first.source != .ownFault && second.source != .ownFault)
                    case .doubted(let piece):
                        #expect(wasAccepted && [.doubtful, .verifiedAddress].contains(piece.source))
                    case .unclear(let piece): #expect(piece == first || piece == second)
                    }
                }
            }
        }
        #expect(count == 2 * all.count * all.count)
    }

    @Test("each statement prints what it means")
    func text() {
        #expect(Evidence(.answer, .rejected(.wrong), "x").text == "the answer to the form means a wrong password: x")
        #expect(
            Evidence(.configured, .rejected(.locked), "x").text == "the answer to the form means a locked account: x")
        #expect(Evidence(.foreignPage, .rejected(.wrong), "x").text == "proves nothing: x")
        #expect(Evidence(.verifiedAddress, .accepted, "x").text == "the login worked: x")
        #expect(Evidence(.ownFault, .unclear, "x").text == "not submitted as a browser would: x")
    }
}

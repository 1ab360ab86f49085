// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets

@testable import ChallengeHandling

/// Checks a structured field, also as `Accept-Signature`. A written field is read back as itself, and every promised
/// signature can be made.
func checkSignatures(_ field: [UInt8]) throws(Violation) {
    if let dictionary = StructuredFieldParser.dictionary(field) {
        let written = Array(StructuredFieldWriter.text(of: dictionary).utf8)
        let again = StructuredFieldParser.dictionary(written)
        try require(
            again?.map(\.key) == dictionary.map(\.key) && again?.map(\.member) == dictionary.map(\.member),
            "\(written.text) is read otherwise")
        try require(Set(dictionary.map(\.key)).count == dictionary.count, "a key twice")
    }
    if let list = StructuredFieldParser.list(field) {
        let written = Array(StructuredFieldWriter.text(of: list).utf8)
        try require(StructuredFieldParser.list(written) == list, "\(written.text) is read otherwise")
    }
    if let item = StructuredFieldParser.item(field) {
        let written = Array(StructuredFieldWriter.text(of: item).utf8)
        try require(StructuredFieldParser.item(written) == item, "\(written.text) is read otherwise")
        if let component = try? SignedComponent(item) {
            let again = try? SignedComponent(StructuredFieldWriter.text(of: component.item))
            try require(again == component, "\(component) is read otherwise")
        }
    }
    try checkAnswer(field)
}

private func checkAnswer(_ field: [UInt8]) throws(Violation) {
    guard let name = HTTPField.Name("Accept-Signature") else { return }
    var fields = HTTPFields()
    fields.append(HTTPField(name: name, value: String(decoding: field, as: UTF8.self)))
    var settings = MessageSignature([SignedComponent(plain: "@method")], .hmac)
    settings.keyID = "k"
    guard let answer = AcceptSignature(fields)?.answer(by: settings, keyID: .known("k")) else { return }
    let plan = answer.plan
    try require(plan.tag == nil, "a signature for another application")
    try require(Set(plan.components).count == plan.components.count, "a component twice: \(plan.components)")
    try require(plan.components.count <= AcceptSignature.mostComponents + 2, "too many components")
    let binds = plan.components.contains { ["@authority", "@target-uri", "host"].contains($0.name) }
    try require(binds, "a signature for every server")
    try require((plan.nonce == .received) == (answer.nonce != nil), "a nonce that nobody has")
    try checkSigned(plan, nonce: answer.nonce)
}

/// Checks that the signed text has one line for each component, and that the field is read as these components.
private func checkSigned(_ plan: MessagePlan, nonce: String?) throws(Violation) {
    let request = SigningRequest(
        method: "GET", origin: Origin(scheme: .https, host: "u.example"), target: "/?a=1&b=%20", fields: OneField())
    let values = MessageValues(request, for: plan.components)
    let parameters = plan.parameters(created: 1, keyID: "k", algorithm: .hmac, nonce: nonce)
    guard let base = try? MessageBase(plan.components, parameters, values) else { return }
    let lines = base.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    try require(lines.count == plan.components.count + 1, "a line more or less: \(base.bytes.text)")
    try require(base.bytes.allSatisfy { $0 < 0x80 }, "not ASCII: \(base.bytes.text)")
    let field = StructuredFieldParser.dictionary(Array("\(plan.label)=\(base.input)".utf8))
    guard field?.count == 1, case .innerList(let items, let read)? = field?.first?.member else {
        throw Violation(description: "\(base.input) is no signature input")
    }
    try require(items == plan.components.map(\.item) && read == parameters, "\(base.input) is read otherwise")
}

private final class OneField: SigningFields {
    func forEach(_ body: (Span<UInt8>, Span<UInt8>) -> Void) {
        let (name, value) = (Array("X".utf8), Array(" a=1, \"b\" ".utf8))
        body(name.span, value.span)
    }
}

extension [UInt8] {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CYAML
internal import SettingsReading

/// One event of a YAML text.
struct YAMLEvent {
    enum Kind {
        case alias
        case documentEnd
        case documentStart
        case mappingEnd
        case mappingStart(isFlow: Bool)
        case scalar(String, isPlain: Bool)
        case sequenceEnd
        case sequenceStart
        case streamEnd
        case streamStart
    }

    var kind: Kind
    var mark: Mark
    var hasAnchor: Bool
    var hasTag: Bool
}

/// libyaml's event parser for a text in memory.
@safe
final class YAMLEvents {
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let input: UnsafeMutableBufferPointer<UInt8>

    /// Creates a parser of valid UTF-8 without a byte order mark.
    init(_ text: [UInt8]) throws(YAMLError) {
        unsafe parser = .allocate(capacity: 1)
        unsafe input = .allocate(capacity: max(text.count, 1))
        guard unsafe yaml_parser_initialize(parser) == 1 else {
            // deinit does not run if init throws.
            unsafe parser.deallocate()
            unsafe input.deallocate()
            throw YAMLError(message: "libyaml is out of memory", mark: Mark(line: 1, column: 1))
        }
        _ = unsafe input.initialize(from: text)
        // libyaml reads the input during parsing and does not free it.
        unsafe yaml_parser_set_input_string(parser, input.baseAddress, text.count)
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe input.deallocate()
    }

    /// Returns the next event. Must not be called after an error or the end of the stream.
    func next() throws(YAMLError) -> YAMLEvent {
        var event = unsafe yaml_event_t()
        guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw failure() }
        defer { unsafe yaml_event_delete(&event) }
        return unsafe YAMLEvent(
            kind: kind(of: &event), mark: Mark(event.start_mark), hasAnchor: cyaml_has_anchor(&event),
            hasTag: cyaml_has_tag(&event))
    }

    private func kind(of event: inout yaml_event_t) -> YAMLEvent.Kind {
        switch unsafe event.type {
        case YAML_ALIAS_EVENT: .alias
        case YAML_DOCUMENT_END_EVENT: .documentEnd
        case YAML_DOCUMENT_START_EVENT: .documentStart
        case YAML_MAPPING_END_EVENT: .mappingEnd
        case YAML_MAPPING_START_EVENT: unsafe .mappingStart(isFlow: cyaml_mapping_is_flow(&event))
        case YAML_SCALAR_EVENT:
            unsafe .scalar(
                String(
                    decoding: UnsafeBufferPointer(
                        start: cyaml_scalar_value(&event), count: cyaml_scalar_length(&event)), as: UTF8.self),
                isPlain: cyaml_scalar_is_plain(&event))
        case YAML_SEQUENCE_END_EVENT: .sequenceEnd
        case YAML_SEQUENCE_START_EVENT: .sequenceStart
        case YAML_STREAM_START_EVENT: .streamStart
        default: .streamEnd
        }
    }

    private func failure() -> YAMLError {
        let problem = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "libyaml is out of memory"
        var context = unsafe parser.pointee.context.map { unsafe String(cString: $0) } ?? ""
        if ["flow mapping", "flow sequence"].contains(where: context.hasSuffix) {
            // An unclosed bracket is noticed only after its position.
            context += unsafe " that begins at \(Mark(parser.pointee.context_mark).text)"
        }
        if !context.isEmpty { context += ": " }
        guard unsafe parser.pointee.error != YAML_READER_ERROR else {
            let offset = unsafe min(parser.pointee.problem_offset, input.count)
            let mark = unsafe Mark(after: input[..<offset])
            return YAMLError(message: problem, mark: mark)
        }
        return unsafe YAMLError(message: context + problem, mark: Mark(parser.pointee.problem_mark))
    }
}

extension Mark {
    fileprivate var text: String { "line \(line), column \(column)" }

    /// Converts libyaml's position, which counts from 0.
    fileprivate init(_ mark: yaml_mark_t) {
        self.init(line: Int(clamping: mark.line) &+ 1, column: Int(clamping: mark.column) &+ 1)
    }

    /// Position after `bytes`.
    init(after bytes: some BidirectionalCollection<UInt8>) {
        let newline = UInt8(ascii: "\n")
        let line = bytes.reduce(1) { $0 + ($1 == newline ? 1 : 0) }
        let start = bytes.lastIndex(of: newline).map(bytes.index(after:)) ?? bytes.startIndex
        // Continuation bytes (10xxxxxx) do not begin a character.
        self.init(line: line, column: bytes[start...].reduce(1) { $0 + ($1 & 0xC0 == 0x80 ? 0 : 1) })
    }
}

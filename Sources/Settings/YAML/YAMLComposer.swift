// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

/// Composer of the tree of one YAML document.
///
/// Stricter than YAML: no anchors and aliases (a few lines can expand to gigabytes), no tags, one document, unique keys of plain
/// text, at most 32 levels.
struct YAMLComposer {
    /// Largest text that is read, in bytes.
    static let maximumSize = 1_048_576
    private static let maximumDepth = 32

    private let events: YAMLEvents
    private let text: [UInt8]
    private var duplicates: [DuplicateKey] = []

    /// Returns the tree of `bytes`, and the repeated keys. The tree has the first of each.
    static func compose(_ bytes: [UInt8]) throws(YAMLError) -> (root: YAMLNode, duplicates: [DuplicateKey]) {
        guard bytes.count <= maximumSize else {
            throw YAMLError(message: "the file is larger than 1 MiB", mark: Mark(line: 1, column: 1))
        }
        try requireUTF8(bytes)
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var composer = try YAMLComposer(bytes.starts(with: byteOrderMark) ? Array(bytes.dropFirst(3)) : bytes)
        let root = try composer.document()
        return (root, composer.duplicates)
    }

    private init(_ text: [UInt8]) throws(YAMLError) {
        events = try YAMLEvents(text)
        self.text = text
    }

    private static func requireUTF8(_ bytes: [UInt8]) throws(YAMLError) {
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var valid = 0
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar): valid += scalar.count
            case .emptyInput: return
            case .error:
                throw YAMLError(
                    message: "the file is not valid UTF-8: this byte is not part of a character",
                    mark: Mark(after: bytes.prefix(valid)))
            }
        }
    }

    private mutating func document() throws(YAMLError) -> YAMLNode {
        _ = try next()
        let start = try next()
        guard case .documentStart = start.kind else {
            throw YAMLError(message: "the file contains no settings", mark: Mark(line: 1, column: 1))
        }
        let root = try node(at: try next(), depth: 1, path: "")
        _ = try next()
        let end = try next()
        guard case .streamEnd = end.kind else {
            throw YAMLError(
                message: "a second document begins here; the configuration must be one document", mark: end.mark)
        }
        return root
    }

    private mutating func node(at event: YAMLEvent, depth: Int, path: String) throws(YAMLError) -> YAMLNode {
        guard !event.hasAnchor else { throw YAMLError(message: "anchors are not allowed", mark: event.mark) }
        guard !event.hasTag else { throw YAMLError(message: "tags are not allowed", mark: event.mark) }
        guard depth <= Self.maximumDepth else {
            throw YAMLError(message: "nested deeper than \(Self.maximumDepth) levels", mark: event.mark)
        }
        switch event.kind {
        case .scalar(let text, let isPlain):
            return YAMLNode(content: .scalar(text, isPlain: isPlain), mark: event.mark)
        case .sequenceStart:
            return YAMLNode(content: .sequence(try elements(depth: depth, path: path)), mark: event.mark)
        case .mappingStart(let isFlow):
            return YAMLNode(content: .mapping(try entries(depth: depth, path: path), isFlow: isFlow), mark: event.mark)
        default:
            throw YAMLError(message: "a value is missing here", mark: event.mark)
        }
    }

    private mutating func elements(depth: Int, path: String) throws(YAMLError) -> [YAMLNode] {
        var elements: [YAMLNode] = []
        while true {
            let event = try next()
            if case .sequenceEnd = event.kind { return elements }
            elements.append(try node(at: event, depth: depth + 1, path: "\(path)[\(elements.count)]"))
        }
    }

    private mutating func entries(depth: Int, path: String) throws(YAMLError) -> [YAMLNode.Entry] {
        var entries: [YAMLNode.Entry] = []
        var seen: [String: Mark] = [:]
        while true {
            let event = try next()
            if case .mappingEnd = event.kind { return entries }
            guard case .scalar(let key, _) = try node(at: event, depth: depth + 1, path: path).content else {
                throw YAMLError(message: "a key must be a single value", mark: event.mark)
            }
            let keyPath = path.isEmpty ? key : "\(path).\(key)"
            let value = try node(at: try next(), depth: depth + 1, path: keyPath)
            if let first = seen.updateValue(event.mark, forKey: key) {
                seen[key] = first
                duplicates.append(DuplicateKey(keyPath: keyPath, mark: event.mark, first: first))
            } else {
                entries.append(YAMLNode.Entry(key: key, keyMark: event.mark, value: value))
            }
        }
    }

    private func next() throws(YAMLError) -> YAMLEvent {
        let event: YAMLEvent
        do {
            event = try events.next()
        } catch {
            throw YAMLError(message: error.message + hint(at: error.mark), mark: error.mark)
        }
        guard case .alias = event.kind else { return event }
        throw YAMLError(
            message: "aliases are not allowed; put quotes around a value that begins with *", mark: event.mark)
    }

    /// Returns advice about the two most common mistakes, which libyaml's message lacks.
    private func hint(at mark: Mark) -> String {
        let lines = text.split(separator: UInt8(ascii: "\n"), maxSplits: mark.line, omittingEmptySubsequences: false)
        guard lines.indices.contains(mark.line - 1) else { return "" }
        let line = Array(String(decoding: lines[mark.line - 1], as: UTF8.self).unicodeScalars)
        func character(_ column: Int) -> Unicode.Scalar? { line.indices.contains(column) ? line[column] : nil }
        if character(mark.column - 1) == "\t" { return "; this is a tab: indent with spaces" }
        if character(mark.column - 2) == "*" { return "; put quotes around a value that begins with *" }
        return ""
    }
}

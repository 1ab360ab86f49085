// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What all runs are made of where somebody looks for one thing: the kind of their servers, their events, several nodes.
struct Scene {
    /// Each kind of server with each choice of at most so many kinds of events, and those that nodes share with two nodes.
    static func all(events most: Int) -> [String] {
        let events = Weather.events.map(\.name)
        let choices = (1..<1 << events.count).filter { $0.nonzeroBitCount <= most }.map { choice in
            events.indices.filter { choice & 1 << $0 > 0 }.map { events[$0] }.joined(separator: ", ")
        }
        let single = ServerMaker.Kind.allCases.flatMap { kind in choices.map { "\(kind.rawValue), \($0)" } }
        let nodes = Set(ServerMaker.shared.map(\.rawValue)).sorted().flatMap { kind in
            choices.map { "nodes, \(kind), \($0)" }
        }
        return single + nodes.filter { Scene($0)?.weather?.allowsNodes == true }
    }

    /// The kind of all servers; `nil` for any.
    private(set) var kind: ServerMaker.Kind?
    /// The events, and no others; `nil` for any.
    private(set) var weather: Weather?
    /// True if two nodes share their sessions.
    private(set) var hasNodes = false

    /// Creates the scene of `words`, separated by commas: a kind of server, names of events, `nodes`. Returns `nil` if one
    /// of them is unknown.
    init?(_ words: String) {
        for word in words.split(separator: ",") {
            let word = word.drop { $0 == " " }
            if word == "nodes" {
                hasNodes = true
            } else if let kind = ServerMaker.Kind(rawValue: String(word)) {
                self.kind = kind
            } else if let event = Weather.events.first(where: { $0.name == word }) {
                if weather == nil {
                    weather = Weather()
                    weather?.hasStrangers = false
                }
                weather?[keyPath: event.path] = true
            } else {
                return nil
            }
        }
    }
}

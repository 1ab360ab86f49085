// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What all runs are made of where somebody looks for one thing: the kind of their servers, their events, several nodes.
struct Scene {
    /// Each kind of server with each one or two kinds of events, and those that nodes share with two nodes.
    static var all: [String] {
        let events = Weather.events.map(\.name)
        let pairs = events.indices.flatMap { first in
            events[first...].map { $0 == events[first] ? $0 : "\(events[first]), \($0)" }
        }
        let single = ServerMaker.Kind.allCases.flatMap { kind in pairs.map { "\(kind.rawValue), \($0)" } }
        let nodes = Set(ServerMaker.shared.map(\.rawValue)).sorted().flatMap { kind in
            pairs.map { "nodes, \(kind), \($0)" }
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

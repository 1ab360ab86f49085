// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

/// The daemon's `/metrics`, read by Prometheus' own parser.
struct ScrapedMetrics: Sendable {
    /// The names of the families, without `_total`.
    let families: Set<String>
    private let samples: [(name: String, labels: [String: String], value: Double)]

    /// Reads a text in that format, `openmetrics` or `prometheus`; throws if the parser refuses it.
    init(_ text: [UInt8], as format: String, in folder: Folder) async throws {
        let script =
            #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/Tests/Scripts/read-metrics"
        let read = try await Command.run([script, format], input: text, in: folder)
        guard read.exit == 0, let json = JSON(parsing: Array(read.output.utf8)) else {
            throw ChildError(description: "\(read.errors)\n\(String(decoding: text, as: UTF8.self))")
        }
        families = Set((json["families"]?.members ?? []).map(\.name))
        samples = (json["samples"]?.elements ?? []).map { sample in
            let labels = (sample["labels"]?.members ?? []).map { ($0.name, $0.value.string ?? "") }
            let value = sample["value"].flatMap { Double($0.text) } ?? .nan
            return (sample["name"]?.string ?? "", Dictionary(labels, uniquingKeysWith: { $1 }), value)
        }
    }

    /// The names of all samples.
    var names: Set<String> { Set(samples.map(\.name)) }

    /// Returns the values of the samples of that name, without its prefix, that have at least those labels.
    func values(_ name: String, _ labels: [String: String] = [:]) -> [Double] {
        let full = name.hasPrefix("process_") ? name : "countersign_\(name)"
        return samples.filter { sample in
            sample.name == full && labels.allSatisfy { sample.labels[$0.key] == $0.value }
        }.map(\.value)
    }

    /// Returns the sum of the values.
    func sum(_ name: String, _ labels: [String: String] = [:]) -> Double { values(name, labels).reduce(0, +) }

    /// The counters' samples by name and labels.
    var counters: [String: Double] {
        var counters: [String: Double] = [:]
        for sample in samples where ["_total", "_bucket", "_count", "_sum"].contains(where: sample.name.hasSuffix) {
            counters["\(sample.name) \(sample.labels.sorted { $0.key < $1.key })"] = sample.value
        }
        return counters
    }
}

extension Bank {
    /// Returns the daemon's metrics, as OpenMetrics.
    func metrics() async throws -> ScrapedMetrics {
        let answer = try await admin("/metrics", "-H", "Accept: application/openmetrics-text")
        #expect(answer.status == 200)
        return try await ScrapedMetrics(answer.body, as: "openmetrics", in: folder)
    }
}

extension JSON {
    /// The elements, if this is an array.
    fileprivate var elements: [JSON] { if case .array(let elements) = self { elements } else { [] } }
}

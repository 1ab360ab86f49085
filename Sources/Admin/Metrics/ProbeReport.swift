// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient

/// The last check of an upstream in the metrics that Prometheus' blackbox exporter has for a probe of HTTP, so that alerts and
/// dashboards made for that exporter show it.
struct ProbeReport {
    private let reading: CheckReading

    init(_ reading: CheckReading) { self.reading = reading }

    /// The metrics as `/probe` serves them, in Prometheus' text format.
    var text: String {
        var text = MetricsText(.prometheus)
        text.family("probe_success", .gauge, "Displays whether or not the probe was a success.")
        text.sample(reading.state == .up ? 1 : 0)
        text.family("probe_duration_seconds", .gauge, "How long the probe took to complete in seconds.")
        text.sample(MetricsText.seconds(nanoseconds: reading.nanoseconds))
        text.family("probe_http_status_code", .gauge, "Response HTTP status code; 0 without a response.")
        text.sample(reading.status ?? 0)
        text.family("probe_timestamp_seconds", .gauge, "The time of the probe; 0 if there was none yet.")
        text.sample(MetricsText.timestamp(milliseconds: reading.askedAt ?? 0))
        return text.text
    }
}

// swift-tools-version: 6.2
import PackageDescription

// A package that depends on Countersign: here by its path, elsewhere by `.package(url: "https://github.com/OWNER/countersign", …)` with
// `from: "0.1.0"`, or with `revision: "…"` as long as there is no such tag.
//
// The system needs libcurl4-openssl-dev and zlib1g-dev for the client; `own-countersign` needs all that the daemon does.
let client: [Target.Dependency] = [
    .product(name: "ChallengeClient", package: "countersign"),
    .product(name: "ChallengeHandling", package: "countersign"),
]
let sample = client + ["ClientExamples", "Samples"]
let package = Package(
    name: "examples",
    dependencies: [.package(name: "countersign", path: "..")],
    targets: [
        .executableTarget(
            name: "own-countersign",
            dependencies: client + [.product(name: "CountersignDaemon", package: "countersign")]),
        .target(name: "ClientExamples", dependencies: client, path: "Sources/LoginExamples"),
        // The samples of the original documents, run against the server of `countersign demo`.
        .target(name: "Samples", dependencies: client),
        .executableTarget(
            name: "pin-code", dependencies: sample + [.product(name: "Credentials", package: "countersign")]),
        .executableTarget(name: "gateway", dependencies: sample),
        .executableTarget(name: "form-login", dependencies: sample),
        // Not `dispatch`: the compiler names a program's entry after it, and `dispatch_main` is libdispatch's.
        .executableTarget(name: "locations", dependencies: sample),
    ]
)

// swift-tools-version: 6.2
import PackageDescription

// Settings of every target. Warnings become errors where COUNTERSIGN_STRICT is set (`make check`, `make test`), not for
// somebody who builds with a later compiler that knows more warnings.
let strict: [SwiftSetting] = Context.environment["COUNTERSIGN_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]
let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .strictMemorySafety(),
    ] + strict

// `make build` says which version this is, and which folder has the archives of the C++ library: the program then needs
// none of its shared ones. What is set here builds one C file anew and links.
let version = (Context.environment["COUNTERSIGN_VERSION"] ?? "").filter { $0.isASCII && !$0.isWhitespace }
let versionSettings: [CSetting] = version.isEmpty ? [] : [.define("COUNTERSIGN_VERSION", to: "\"\(version)\"")]
let archives = Context.environment["COUNTERSIGN_ARCHIVES"]
let archiveFlags = [
    "-Xclang-linker", "-static-libgcc", "-Xlinker", "-z", "-Xlinker", "relro", "-Xlinker", "-z", "-Xlinker", "now",
]
let archiveSettings: [LinkerSetting] = archives.map { [.unsafeFlags(["-L", $0] + archiveFlags)] } ?? []

let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
// A client alone needs none of these packages: with `traits: []` SwiftPM does not even fetch them.
let isProgram: TargetDependencyCondition? = .when(traits: ["Daemon"])
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto", condition: isProgram)
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto", condition: isProgram)
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log", condition: isProgram)
let arguments: Target.Dependency = .product(
    name: "ArgumentParser", package: "swift-argument-parser", condition: isProgram)

// A part of the package, for sanitizers and the like; see the end.
let part = Context.environment["COUNTERSIGN_PART"]
// True if the package has all that the program needs.
let isWhole = part == nil || part == "tools"
// The default build leaves out the tests of `make nightly`: those of fuzzers, simulations and fakes, and those that need applications and
// browsers.
let hasAllTests = Context.environment["COUNTERSIGN_TESTS"] == "all"

/// A target of the program; dependencies point downward only (docs/architecture.md has the picture).
func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// The unit tests of the target of that name.
func tests(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.target(name: name)] + dependencies, swiftSettings: settings)
}

// What is fuzzed. A test of every build runs it over the seeds; the fuzzer itself is built by `make fuzz` alone.
let fuzzed: [Target.Dependency] = [
    "Admin", "Basics", "ChallengeClient", "ChallengeHandling", "Curl", "EventLoop", "Learning", "Proxy", "HTTPWire",
    "Redis", "Secrets",
    "Settings", "SettingsReading", httpTypes,
]
let unfuzzed = ["README.md", "dictionaries", "grammar", "pack", "packed", "run", "seedpack.py"]

// What the simulation runs, and needs.
let simulated: [Target.Dependency] = [
    "Admin", "Basics", "ChallengeClient", "ChallengeHandling", "CountersignDaemon", "Credentials", "Curl", "EventLoop",
    "HTTPWire", "Kerberos",
    "Proxy", "Secrets", "SessionStoreModel", "Settings", "SharedSessions", "System", "TestSupport", httpTypes, logging,
    crypto,
]
let unsimulated = ["README.md", "run"]

let package = Package(
    name: "countersign",
    products: [
        .executable(name: "countersign", targets: ["countersign"]),
        // The same, for a daemon with handlers of one's own.
        .library(name: "CountersignDaemon", targets: ["CountersignDaemon"]),
        .library(name: "ChallengeHandling", targets: ["ChallengeHandling", "Secrets"]),
        .library(name: "ChallengeClient", targets: ["ChallengeClient"]),
        // Apart, for swift-crypto takes longer to build than all the rest, and not every client needs it.
        .library(name: "Credentials", targets: ["Credentials"]),
        .library(name: "Kerberos", targets: ["Kerberos"]),
    ],
    traits: [
        .default(enabledTraits: ["Daemon"]),
        .trait(name: "Daemon", description: "The packages of the daemon and of the product Credentials."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    ],
    targets: [
        // C libraries of the system, and the kernel calls that Glibc's module lacks.
        .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CSystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CYAML", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        .systemLibrary(name: "CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
        .systemLibrary(name: "CLinux"),
        // The version: a file of its own, so that no other is built anew because of it.
        .target(name: "CVersion", publicHeadersPath: ".", cSettings: versionSettings),

        // The floor: values that everything else counts on.
        module("Basics"),
        module("System", ["Basics", "CLinux"]),

        // Mechanism.
        module("Secrets"),
        module("FieldBytes", [httpTypes]),
        module("HTTPWire", ["Basics"]),
        module("EventLoop", ["Basics", "CLinux", "System"]),
        module("Curl", ["Basics", "CCurl"]),
        .target(
            name: "Redis", dependencies: ["Basics", "CHiredis"], swiftSettings: settings,
            // The archive, as for YAML.
            linkerSettings: [.linkedLibrary(":libhiredis.a")]),
        module("Systemd", ["CLinux", "CSystemd", "System"]),
        module("Charsets", ["Basics"]),

        // Challenges and what answers them.
        module("SettingsReading", ["Basics"]),
        module("ChallengeHandling", ["Basics", "Charsets", "FieldBytes", "Secrets", "SettingsReading", httpTypes]),
        module("Kerberos", ["Secrets", "ChallengeHandling", "CGSSAPI"]),
        // What a server's answers and a browser's recording tell of its login.
        module("Learning", ["Basics", "FieldBytes", "Secrets", "ChallengeHandling", "SettingsReading", httpTypes]),
        module(
            "Credentials", ["Basics", "Secrets", "ChallengeHandling", "CLinux", "System", crypto, cryptoExtras]),
        .target(
            name: "ChallengeClient",
            dependencies: [
                "Basics", "ChallengeHandling", "CVersion", "FieldBytes", "Secrets", "HTTPWire", "Curl", "EventLoop",
                "System", "CZlib", httpTypes,
            ],
            swiftSettings: settings,
            // The archive, as for YAML.
            linkerSettings: [.linkedLibrary(":libz.a")]),

        // Built by the package in its own folder, too, so that it uses what is public only.
        .target(
            name: "LoginExamples", dependencies: ["ChallengeClient", "ChallengeHandling", httpTypes],
            path: "Examples/Sources/LoginExamples", swiftSettings: settings),

        // Sessions shared by several nodes, through a session store.
        .target(
            name: "SharedSessions",
            dependencies: [
                "Basics", "ChallengeClient", "ChallengeHandling", "Curl", "EventLoop", "HTTPWire", "Redis", "Secrets",
            ] + (isWhole ? ["Credentials", crypto] : []),
            // The keys need swift-crypto, which a part lacks.
            exclude: isWhole ? [] : ["Sharing/SharingKeys.swift"], swiftSettings: settings),
        // The session store as a value, for tests: simulated groups of nodes run on it, real session stores are compared with it.
        .target(
            name: "SessionStoreModel", dependencies: ["Basics", "ChallengeHandling", "SharedSessions"],
            path: "Tests/SessionStoreModel", swiftSettings: settings),

        // What tests of several targets have in common.
        .target(
            name: "TestSupport", dependencies: ["ChallengeHandling", "EventLoop", "Secrets", "System"],
            path: "Tests/TestSupport", swiftSettings: settings),
        // Servers that tests log in at. They share no code with the program, so that they cannot share its mistakes.
        .target(
            name: "FakeServers", dependencies: [crypto, cryptoExtras], path: "Tests/FakeServers",
            swiftSettings: settings),

        // The daemon.
        module(
            "Proxy",
            [
                "Basics", "ChallengeClient", "ChallengeHandling", "HTTPWire", "Curl", "EventLoop", "CLinux", "Secrets",
                "System",
                logging,
            ]),
        module(
            "Admin", ["Basics", "Proxy", "ChallengeClient", "ChallengeHandling", "HTTPWire", "EventLoop", "System"]),
        .target(
            name: "Settings",
            dependencies: [
                "Basics", "ChallengeClient", "ChallengeHandling", "Curl", "HTTPWire", "Proxy", "Secrets",
                "SettingsReading",
                "SharedSessions", "System", "CYAML", httpTypes, logging,
            ],
            swiftSettings: settings,
            // The archive, so that the binary needs no library that its Debian package does not name.
            linkerSettings: [.linkedLibrary(":libyaml.a")]),
        module("DemoUpstream", ["Basics", "ChallengeHandling", "HTTPWire", "System", crypto]),
        .target(
            name: "CountersignDaemon",
            dependencies: [
                "Admin", "Basics", "CLinux", "CVersion", "ChallengeClient", "ChallengeHandling", "Credentials", "Curl",
                "DemoUpstream", "EventLoop", "Proxy", "HTTPWire", "Kerberos", "Learning", "Secrets", "Settings",
                "SettingsReading", "SharedSessions", "System", "Systemd",
                arguments, logging, httpTypes,
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "countersign", dependencies: ["CountersignDaemon"], swiftSettings: settings,
            linkerSettings: archiveSettings),

        tests("Basics"),
        tests("System", ["TestSupport"]),
        tests("Secrets"),
        tests("HTTPWire", ["Basics", "TestSupport"]),
        tests("EventLoop", ["TestSupport"]),
        tests("Curl", ["EventLoop", "TestSupport"]),
        tests("Systemd"),
        tests("Redis"),
        tests("ChallengeHandling", ["Charsets", "Secrets", "SettingsReading", "TestSupport", httpTypes]),
        tests("Learning", ["Secrets", "ChallengeHandling", "TestSupport", httpTypes]),
        tests(
            "Credentials",
            ["Secrets", "ChallengeHandling", "System", "TestSupport", httpTypes, crypto, cryptoExtras]),
        tests(
            "ChallengeClient",
            [
                "Basics", "ChallengeHandling", "Curl", "EventLoop", "HTTPWire", "Secrets", "TestSupport", httpTypes,
            ]),
        .testTarget(
            name: "SharedSessionsTests",
            dependencies: [
                "Basics", "ChallengeClient", "ChallengeHandling", "Curl", "EventLoop", "Redis", "Secrets",
                "SessionStoreModel", "SharedSessions", "TestSupport", httpTypes,
            ], exclude: isWhole ? [] : ["Sealing"], swiftSettings: settings),
        .testTarget(
            name: "ClientLibraryTests",
            dependencies: [
                "ChallengeClient", "ChallengeHandling", "Credentials", "EventLoop", "FakeServers", "LoginExamples",
                "Secrets", "TestSupport", httpTypes,
            ], swiftSettings: settings),
        tests(
            "Proxy",
            [
                "ChallengeClient", "ChallengeHandling", "Curl", "HTTPWire", "EventLoop", "Secrets", "TestSupport",
                httpTypes, logging,
            ]),
        tests(
            "Admin",
            ["Proxy", "ChallengeClient", "ChallengeHandling", "HTTPWire", "Secrets", "TestSupport", httpTypes]),
        tests(
            "Settings",
            [
                "ChallengeClient", "ChallengeHandling", "Curl", "Proxy", "Secrets", "SettingsReading", "SharedSessions",
                "TestSupport", httpTypes, logging,
            ]),
        tests("DemoUpstream", ["ChallengeHandling", "TestSupport", crypto]),
        tests(
            "CountersignDaemon",
            [
                "Admin", "ChallengeClient", "ChallengeHandling", "Credentials", "Curl", "InventedKind", "Kerberos",
                "Secrets", "Settings",
                "SettingsReading",
                "System", "Systemd",
                "TestSupport", httpTypes, logging, arguments,
            ]),
        // A kind of challenge that the program does not have, and a program that has it.
        .target(
            name: "InventedKind", dependencies: ["ChallengeHandling", "Secrets", "SettingsReading", httpTypes],
            path: "Tests/InventedKind", swiftSettings: settings),
        .executableTarget(
            name: "InventedProgram", dependencies: ["ChallengeHandling", "CountersignDaemon", "InventedKind"],
            path: "Tests/InventedProgram", swiftSettings: settings),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "Admin", "ChallengeClient", "ChallengeHandling", "FakeServers", "LoginExamples", "Proxy", "Secrets",
                "TestSupport", "countersign", "InventedProgram", httpTypes,
            ], exclude: hasAllTests ? [] : ["Applications"], swiftSettings: settings),
    ]
)

// The whole daemon among simulated callers, servers and disks: one of the tools, and in the default build for `make verify`.
let simulation = Target.executableTarget(
    name: "simulation", dependencies: simulated, path: "Tests/Simulation", exclude: unsimulated + ["Tests"],
    swiftSettings: settings)
// What is fuzzed, with sentences of known meaning: one of the tools, and built by `make verify`, so that no change leaves it behind.
let grammar = Target.executableTarget(
    name: "grammar", dependencies: fuzzed, path: "Tests/Fuzz", exclude: unfuzzed + ["Driver", "Replay"],
    swiftSettings: settings)
if Context.environment["COUNTERSIGN_TESTS"] == "simulation" { package.targets += [simulation, grammar] }

if hasAllTests || part != nil {
    package.targets += [
        tests("FakeServers", ["TestSupport", crypto, cryptoExtras]),
        .testTarget(
            name: "FuzzTests", dependencies: fuzzed + ["TestSupport"], path: "Tests/Fuzz",
            exclude: unfuzzed + ["Driver", "Runner"],
            swiftSettings: settings),
        .testTarget(
            name: "SharedSessionSimulationTests",
            dependencies: [
                "Basics", "ChallengeHandling", "SessionStoreModel", "Secrets", "SharedSessions", "TestSupport",
                httpTypes,
            ],
            path: "Tests/SharedSessionSimulation", exclude: ["run"], swiftSettings: settings),
        .testTarget(
            name: "SimulationTests", dependencies: simulated, path: "Tests/Simulation",
            exclude: unsimulated + ["Program"], swiftSettings: settings),
    ]
}

// Parts are built in folders of their own, with other flags; `Tests/Scripts/part` sets this. All but `tools` leave out swift-crypto, which
// takes longer to build than all the rest together, and systemd.
switch part {
case nil: break
case "tools":
    // Programs of the verification, and the daemon itself, optimized.
    package.products = []
    package.targets.removeAll { target in
        target.type == .test || ["InventedProgram", "InventedKind", "LoginExamples"].contains(target.name)
    }
    package.targets += [
        simulation,
        .executableTarget(
            name: "micro-benchmarks",
            dependencies: [
                "ChallengeClient", "ChallengeHandling", "Curl", "Proxy", "HTTPWire", "Secrets", httpTypes,
            ], path: "Tests/Benchmarks/Micro", swiftSettings: settings),
        grammar,
    ]
case let part?:
    let leftOut = [
        "CSystemd", "ClientLibrary", "Countersign", "Credentials", "DemoUpstream", "EndToEnd",
        "FakeServers", "SharedSessionSimulation", "Simulation", "Invented", "LoginExamples", "Systemd", "countersign",
    ]
    let everything = package.targets
    package.products.removeAll { product in leftOut.contains { product.name.hasPrefix($0) } }
    package.targets.removeAll { target in leftOut.contains { target.name.hasPrefix($0) } }
    package.dependencies.removeAll { dependency in
        guard case .sourceControl(_, let location, _) = dependency.kind else { return false }
        return location.hasSuffix("/swift-crypto") || location.hasSuffix("/swift-argument-parser")
    }
    if part == "thread" || part == "address" {
        package.targets.append(
            .target(name: "MutexForThreadSanitizer", path: "Tests/Sanitizers/MutexForThreadSanitizer"))
        package.targets.first { $0.name == "EventLoopTests" }?.dependencies.append("MutexForThreadSanitizer")
    }
    if part == "thread" {
        // What has threads; the others are values.
        let threaded = ["System", "EventLoop", "Curl", "ChallengeClient", "SharedSessions", "Proxy", "Admin"]
        package.targets.removeAll { $0.type == .test && !threaded.contains("\($0.name.dropLast(5))") }
    }
    if part == "unit" {
        // What needs no C library of the system.
        let kept = [
            "Basics", "CLinux", "ChallengeHandling", "EventLoop", "FieldBytes", "HTTPWire", "Learning", "Secrets",
            "SessionStoreModel",
            "SettingsReading", "SharedSessionSimulation", "SharedSessions", "System", "TestSupport",
        ]
        package.products = []
        package.targets = everything.filter { target in kept.contains { [$0, "\($0)Tests"].contains(target.name) } }
        for target in package.targets where target.name.hasPrefix("SharedSessions") {
            target.sources = ["Lease"]
            target.exclude = []
            target.dependencies =
                ["Basics", "ChallengeHandling"] + (target.type == .test ? ["SharedSessions", "TestSupport"] : [])
        }
        package.dependencies.removeAll { dependency in
            guard case .sourceControl(_, let location, _) = dependency.kind else { return false }
            return !location.hasSuffix("/swift-http-types")
        }
    }
    if part == "fuzz" || part == "fuzz-bare" {
        package.targets.removeAll { $0.type == .test }
        // libFuzzer counts what is reached here, and neither in its own targets nor in what lies below.
        let instrumented = [
            "Admin", "ChallengeClient", "ChallengeHandling", "Proxy", "HTTPWire", "Redis", "Settings",
            "SettingsReading",
        ]
        // Telling it each comparison takes a third of the time, which the bare one puts into more inputs. Where there is no
        // sanitizer for all, the compiler takes the option together with one only.
        let coverage =
            part == "fuzz"
            ? ["-sanitize-coverage=edge,inline-8bit-counters,pc-table,trace-cmp,indirect-calls"]
            : ["-sanitize=fuzzer", "-sanitize-coverage=edge,inline-8bit-counters,pc-table"]
        for target in package.targets where instrumented.contains(target.name) {
            target.swiftSettings?.append(.unsafeFlags(coverage))
        }
        package.targets.append(
            .executableTarget(
                name: "fuzz", dependencies: fuzzed, path: "Tests/Fuzz", exclude: unfuzzed + ["Replay", "Runner"],
                swiftSettings: settings))
    }
}

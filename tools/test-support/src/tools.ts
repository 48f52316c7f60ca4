import { spawnSync } from "node:child_process";

/** A program that some tests run and npm does not install. */
export type Tool =
	| "chromium"
	| "curl"
	| "etcd"
	| "etcdctl"
	| "go"
	| "openssl"
	| "python3"
	| "strace"
	| "systemd-analyze";

/** The arguments that print a tool's version, and the Debian package that contains the tool. */
export const tools: Readonly<Record<Tool, { readonly version: string; readonly package: string }>> =
	{
		chromium: { version: "--version", package: "chromium" },
		curl: { version: "--version", package: "curl" },
		etcd: { version: "--version", package: "etcd-server" },
		etcdctl: { version: "version", package: "etcd-client" },
		go: { version: "version", package: "golang-go" },
		openssl: { version: "version", package: "openssl" },
		python3: { version: "--version", package: "python3-venv" },
		strace: { version: "-V", package: "strace" },
		"systemd-analyze": { version: "--version", package: "systemd" },
	};

const versions = new Map<Tool, string | undefined>();

/** The first line that a tool prints about its version; undefined if it is not on the PATH. */
export function toolVersion(tool: Tool): string | undefined {
	if (!versions.has(tool)) {
		const { status, stdout } = spawnSync(tool, [tools[tool].version], { encoding: "utf8" });
		versions.set(tool, status === 0 ? (stdout.split("\n")[0] ?? "") : undefined);
	}
	return versions.get(tool);
}

/** The end of the name of a test that was skipped because these tools are missing. */
export function needsText(missing: readonly Tool[]): string {
	return `(needs ${missing.join(", ")})`;
}

/** The tools in such a name; empty if the test was skipped for another reason. */
export function missingTools(testName: string): readonly string[] {
	return /\(needs ([a-z0-9, -]+)\)/.exec(testName)?.[1]?.split(", ") ?? [];
}

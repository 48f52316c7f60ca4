/** The server and the client in grpc-go, built from `grpc-go` and the protos with whatever Go is installed. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

export interface GoPrograms {
	readonly server: string;
	readonly client: string;
}

const folder = join(import.meta.dirname, "../grpc-go");
const repository = "../../../..";

/** The messages and services in Go. Not committed: only this bench uses them, and only if there is Go. */
const generation = {
	version: "v2",
	clean: true,
	managed: {
		enabled: true,
		override: [{ file_option: "go_package_prefix", value: "plinth.dev/bench/build/gen" }],
	},
	inputs: [
		{
			directory: `${repository}/packages/proto/proto`,
			paths: [`${repository}/packages/proto/proto/plinth/resource`],
		},
		{
			directory: `${repository}/apps/server/testdata/proto`,
			paths: [`${repository}/apps/server/testdata/proto/music/v1/music.proto`],
		},
	],
	plugins: ["protoc-gen-go", "protoc-gen-go-grpc"].map((plugin) => ({
		local: ["go", "tool", plugin],
		out: "build/gen",
		opt: ["paths=source_relative"],
	})),
};

/** Builds them; a second build takes a second. Says why if there are none. */
export function buildGoPrograms(): GoPrograms | undefined {
	if (spawnSync("go", ["version"]).status !== 0) {
		console.log("grpc-go is skipped, and the client is the one of JavaScript: Go is not installed");
		return undefined;
	}
	const steps = [
		["buf", "generate", "--template", JSON.stringify(generation)],
		["go", "build", "-o", "build/bin/", "./server", "./client"],
	];
	for (const [program = "", ...args] of steps) {
		const { status, stderr, error } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
		if (status !== 0) {
			console.log(
				"grpc-go is skipped, and the client is the one of JavaScript:",
				`${program} ${args[0]} failed (the first build downloads Go modules):\n${error ?? stderr}`,
			);
			return undefined;
		}
	}
	return {
		server: join(folder, "build/bin/server"),
		client: join(folder, "build/bin/client"),
	};
}

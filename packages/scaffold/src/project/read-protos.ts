import { execFile } from "node:child_process";
import { access, glob } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { ScaffoldError } from "../scaffold-error.ts";

/** The folder of a project's own protos. */
export const protoFolder = "proto";

/** The limit on the descriptors of a project, in bytes. */
const maxBytes = 256 * 1024 * 1024;

/** The protos of a project. */
export interface Protos {
	/** The descriptors of its protos, and of all protos that its `buf.yaml` names. */
	readonly registry: FileRegistry;
	/** The paths of its own, as protos import them. */
	readonly own: ReadonlySet<string>;
}

/**
 * Compiles the protos of a project with its own buf.
 *
 * @throws ScaffoldError if buf is not installed, or the protos do not compile.
 */
export async function readProtos(root: string): Promise<Protos> {
	const own = new Set<string>();
	for await (const path of glob("**/*.proto", { cwd: join(root, protoFolder) })) {
		own.add(path.replaceAll("\\", "/"));
	}
	if (own.size === 0) {
		return { registry: createFileRegistry(), own };
	}
	const image = await build(await findBuf(root), root);
	return { registry: createFileRegistry(fromBinary(FileDescriptorSetSchema, image)), own };
}

async function findBuf(root: string): Promise<string> {
	for (let folder = root; ; folder = dirname(folder)) {
		const path = join(folder, "node_modules/.bin/buf");
		try {
			await access(path);
			return path;
		} catch {
			if (folder === dirname(folder)) {
				throw new ScaffoldError(
					`buf is not installed in ${root}, so its protos can't be read: run npm install there`,
				);
			}
		}
	}
}

function build(buf: string, root: string): Promise<Buffer> {
	const args = ["build", "--exclude-source-info", "-o", "-"];
	return new Promise((resolve, reject) => {
		execFile(
			buf,
			args,
			{ cwd: root, encoding: "buffer", maxBuffer: maxBytes },
			(error, out, problems) => {
				if (error === null) {
					resolve(out);
					return;
				}
				const text = problems.toString("utf8").trim() || error.message;
				reject(new ScaffoldError(`the project's protos do not compile; fix them first:\n${text}`));
			},
		);
	});
}

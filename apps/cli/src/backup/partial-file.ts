import { randomUUID } from "node:crypto";
import { access, type FileHandle, link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";

/**
 * A file that gets its final name only when it is complete and on disk. Until then its name is
 * `<path>.partial-…`; only a killed process leaves such a file behind. Only its owner can read it.
 */
export class PartialFile implements AsyncDisposable {
	readonly #path: string;
	readonly #partial: string;
	readonly #handle: FileHandle;

	private constructor(path: string, partial: string, handle: FileHandle) {
		this.#path = path;
		this.#partial = partial;
		this.#handle = handle;
	}

	/** @throws Failure if the file exists, or can't be written. */
	static async create(path: string): Promise<PartialFile> {
		await refuseExisting(path);
		const partial = `${path}.partial-${randomUUID()}`;
		try {
			return new PartialFile(path, partial, await open(partial, "wx", 0o600));
		} catch (cause) {
			throw usageFailure(`can't write ${path}: ${messageOf(cause)}`, { cause });
		}
	}

	/** Appends bytes. @throws Failure */
	async write(bytes: Uint8Array): Promise<void> {
		try {
			await this.#handle.writeFile(bytes);
		} catch (cause) {
			throw this.#failure(cause);
		}
	}

	/** Syncs the file to disk, then gives it its final name. @throws Failure */
	async publish(): Promise<void> {
		try {
			await this.#handle.sync();
			await this.#handle.close();
			await this.#name();
			const directory = await open(dirname(this.#path), "r");
			try {
				await directory.sync();
			} finally {
				await directory.close();
			}
		} catch (cause) {
			throw cause instanceof Failure ? cause : this.#failure(cause);
		}
	}

	/** Removes the partial file, if it was not published. */
	async [Symbol.asyncDispose](): Promise<void> {
		await this.#handle.close();
		await rm(this.#partial, { force: true });
	}

	async #name(): Promise<void> {
		try {
			// Unlike a rename, a link never replaces a file.
			await link(this.#partial, this.#path);
		} catch (cause) {
			await refuseExisting(this.#path);
			if (!(cause instanceof Error && "code" in cause && noLinks.has(String(cause.code)))) {
				throw cause;
			}
			await rename(this.#partial, this.#path);
		}
	}

	#failure(cause: unknown): Failure {
		return new Failure(exitCodes.failed, `can't write ${this.#path}: ${messageOf(cause)}`, {
			cause,
		});
	}
}

/** The error codes of file systems without hard links. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

async function refuseExisting(path: string): Promise<void> {
	const exists = await access(path).then(
		() => true,
		() => false,
	);
	if (exists) {
		throw usageFailure(`${path} already exists and was not changed: choose another name`);
	}
}

function messageOf(cause: unknown): string {
	if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") {
		return "its folder does not exist";
	}
	return cause instanceof Error ? cause.message : String(cause);
}

import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { decode, idOf, resourceOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FilmSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import type { Io } from "../io.ts";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
beforeEach(async () => {
	server = await startCinema();
	await put("Alien");
});
afterEach(() => server[Symbol.asyncDispose]());

const put = (title: string) =>
	server.client.write({
		resource: resourceOf(Film, { id: idOf(Film, "alien"), data: create(FilmSchema, { title }) }),
	});

async function title() {
	const { resource } = await server.client.read({ id: idOf(Film, "alien") });
	return resource && decode(Film, resource).data.title;
}

type Step = (text: string) => string | Promise<string>;

/** Runs an edit in which the editor does these steps, one each time it is opened. */
async function edit(steps: readonly Step[], isInteractive = true) {
	const seen: string[] = [];
	let file = "";
	const result = await runPlinth(["edit", "film", "alien", "--server", server.address], {
		isInteractive,
		env: { EDITOR: "the-editor" },
		async runEditor(command, path) {
			expect(command).toBe("the-editor");
			file = path;
			expect(statSync(path).mode & 0o077).toBe(0);
			const text = readFileSync(path, "utf8");
			const step = steps[seen.length];
			seen.push(text);
			if (step === undefined) {
				return 1;
			}
			writeFileSync(path, await step(text));
			return 0;
		},
	});
	return { ...result, seen, file };
}

const isThere = (file: string) => statSync(file, { throwIfNoEntry: false }) !== undefined;

describe("edit", () => {
	it("writes what the editor leaves, and cleans up", async () => {
		const { code, out, seen, file } = await edit([(text) => text.replace("Alien", "Aliens")]);
		expect({ code, out }).toEqual({ code: 0, out: "cinema.v1.Film/alien updated\n" });
		expect(await title()).toBe("Aliens");
		expect(seen[0]).toMatch(/^# .*\n# .*\ntype: cinema\.v1\.Film\nname: alien\n/);
		expect(seen[0]).not.toContain("version:");
		expect(isThere(dirname(file))).toBe(false);
	});

	const putWith = (metadata: Record<string, string>) =>
		server.client.write({
			resource: {
				...resourceOf(Film, {
					id: idOf(Film, "alien"),
					data: create(FilmSchema, { title: "Alien" }),
				}),
				metadata,
			},
		});
	const metadata = async () =>
		(await server.client.read({ id: idOf(Film, "alien") })).resource?.metadata;

	it.each([
		["a finalizer", /^ {2}finalizers: .*\n/m, { note: "old", "apply-set": "shop" }],
		["the value of a finalizer", /(?<=^ {2}finalizers:) .*/m, { note: "old", "apply-set": "shop" }],
		["another entry", /^ {2}note: .*\n/m, { finalizers: "archive", "apply-set": "shop" }],
		["the mark of a set", /^ {2}apply-set: .*\n/m, { finalizers: "archive", note: "old" }],
		["all metadata", /^metadata:\n( {2}.*\n)*/m, {}],
		["all metadata but its key", /(?<=^metadata:\n)( {2}.*\n)*/m, {}],
	])("removes what is deleted: %s", async (_what, deleted, left) => {
		await putWith({ finalizers: "archive", note: "old", "apply-set": "shop" });
		const { code, out, err } = await edit([(text) => text.replace(deleted, "")]);
		expect({ code, out, err }).toEqual({ code: 0, out: "cinema.v1.Film/alien updated\n", err: "" });
		expect(await metadata()).toEqual(left);
		expect(await title()).toBe("Alien");
	});

	it("lets a deletion go on if its finalizer is deleted, and not be undone", async () => {
		await putWith({ finalizers: "archive" });
		await server.client.delete({ id: idOf(Film, "alien") });
		let original = "";
		const { code, seen } = await edit([
			(text) => {
				original = text;
				return text.replace(/^ {2}deletionTimestamp: .*\n/m, "");
			},
			(text) => text.replace(/^metadata:\n( {2}.*\n)*/m, ""),
			() => original.replace(/^ {2}finalizers: .*\n/m, ""),
		]);
		expect(code).toBe(0);
		expect(seen[1]).toContain(
			"# the resource is marked for deletion, so a write can't remove its deletionTimestamp\n",
		);
		expect(seen[2]).toContain(
			"# the resource is marked for deletion, so a write can't remove its deletionTimestamp\n",
		);
		await expect(metadata()).rejects.toThrow("resource not found");
	});

	it("refuses to delete what a resource must have, and ignores a missing uid", async () => {
		const { code, seen } = await edit([
			(text) => text.replace(/^data:\n( {2}.*\n)*/m, ""),
			(text) => `${text.replace(/^name: .*\n/m, "")}`,
			() => "type: cinema.v1.Film\nname: alien\ndata:\n  title: Aliens\n",
		]);
		expect(code).toBe(0);
		expect(seen[1]).toContain("resource.data.title is required\n");
		expect(seen[2]).toContain("name: is required\n");
		expect(await title()).toBe("Aliens");
	});

	it("says what plinth apply would not remove from a file that it keeps", async () => {
		await putWith({ finalizers: "archive", note: "old" });
		const { code, err, file } = await edit([
			async (text) => {
				await put("Theirs");
				return text.replace(/^metadata:\n( {2}.*\n)*/m, "");
			},
		]);
		expect(code).toBe(4);
		expect(err).toContain("run plinth apply -f, which keeps what the file lacks: metadata\n");
		rmSync(dirname(file), { recursive: true });
	});

	it("changes nothing where nothing was changed, or all was deleted", async () => {
		for (const step of [(text: string) => text, () => ""]) {
			const { code, err, file } = await edit([step]);
			expect({ code, err }).toEqual({ code: 0, err: "nothing was changed\n" });
			expect(isThere(file)).toBe(false);
		}
	});

	it("opens the editor again with what is wrong, at first and by the server", async () => {
		const { code, seen } = await edit([
			(text) => text.replace("title:", "titel:"),
			(text) => text.replace("titel: Alien", 'title: ""'),
			(text) => text.replace('title: ""', "title: Better"),
		]);
		expect(code).toBe(0);
		expect(seen[1]).toContain("data.titel: Film has no such field; did you mean title?\n");
		expect(seen[2]).toContain("resource.data.title is required\n");
		expect(seen[2]).not.toContain("titel: Film");
		expect(await title()).toBe("Better");
	});

	it("keeps the comments of the user, and ends when the refused document is left as it is", async () => {
		const { code, err, seen, file } = await edit([
			(text) => `${text.replace("title: Alien", 'title: ""')}# why: no title yet\n`,
			(text) => text,
		]);
		expect(code).toBe(1);
		expect(seen).toHaveLength(2);
		expect(seen[1]).toMatch(/^# Edit the resource below.*\n# .*\n#\n# .*title is required\n/);
		expect(seen[1]).toContain('data:\n  title: ""\n');
		expect(seen[1]).toMatch(/# why: no title yet\n$/);
		expect(err).toContain("title is required\nyour edit is in ");
		expect(readFileSync(file, "utf8")).toContain('title: ""');
		expect(await title()).toBe("Alien");
		rmSync(dirname(file), { recursive: true });
	});

	it("ends without a change when the refused document is emptied or taken back", async () => {
		for (const step of [() => "", (text: string) => text.replace('title: ""', "title: Alien")]) {
			const { code, err, file } = await edit([
				(text) => text.replace("title: Alien", 'title: ""'),
				step,
			]);
			expect({ code, err }).toEqual({ code: 0, err: "nothing was changed\n" });
			expect(isThere(file)).toBe(false);
		}
	});

	it("shows several refusals one after the other, each instead of the one before", async () => {
		const { code, seen } = await edit([
			(text) => text.replace("name: alien", "name: other"),
			(text) => text.replace("name: other", "name: alien").replace("title: Alien", "title: 5: 6"),
			(text) => text.replace("title: 5: 6", "title: Five"),
		]);
		expect(code).toBe(0);
		expect(seen[1]).toContain("# an edit can't rename a resource");
		expect(seen[2]).not.toContain("rename");
		expect(seen[2]?.match(/^# Edit the resource below/gm)).toHaveLength(1);
		expect(await title()).toBe("Five");
	});

	it("names the file of an edit that is interrupted, or whose editor fails later", async () => {
		let file = "";
		const interrupted = startPlinth(["edit", "film", "alien", "--server", server.address], {
			isInteractive: true,
			env: { EDITOR: "the-editor" },
			async runEditor(_command, path) {
				file = path;
				writeFileSync(path, readFileSync(path, "utf8").replace("Alien", "Mine"));
				interrupted.interrupt();
				return 1;
			},
		});
		const { code, err } = await interrupted.ended;
		expect({ code, err }).toEqual({
			code: 130,
			err: `interrupted: your edit is in ${file}\n`,
		});
		expect(readFileSync(file, "utf8")).toContain("title: Mine");
		rmSync(dirname(file), { recursive: true });
		const later = await edit([(text) => text.replace("title: Alien", 'title: ""')]);
		expect(later.err).toContain(`the edited file is ${later.file}`);
		expect(readFileSync(later.file, "utf8")).toContain('title: ""');
		rmSync(dirname(later.file), { recursive: true });
	});

	it("says what to do if the editor is not installed, can't be started, or removes its file", async () => {
		const outcome = async (runEditor: Io["runEditor"]) => {
			const args = ["edit", "film", "alien", "--server", server.address];
			let file = "";
			const { code, err } = await runPlinth(args, {
				env: { EDITOR: "the-editor" },
				runEditor(command, path) {
					file = path;
					return runEditor(command, path);
				},
			});
			rmSync(dirname(file), { recursive: true });
			expect(code).toBe(1);
			return err.replace(file, "FILE");
		};
		expect(await outcome(async () => 127)).toBe(
			"plinth: the editor exited with code 127, so nothing was changed; the edited file is FILE. Is the-editor installed? Set VISUAL or EDITOR to another editor\n",
		);
		const failing = () => Promise.reject(new Error("spawn sh ENOENT"));
		expect(await outcome(failing)).toBe(
			"plinth: the editor can't be started: spawn sh ENOENT; the edited file is FILE\n",
		);
		const removing = async (_command: string, path: string) => {
			rmSync(path);
			return 0;
		};
		expect(await outcome(removing)).toContain("the editor left no file: ENOENT");
		expect(await title()).toBe("Alien");
	});

	it("opens the editor again for a refusal by rights or by the state of others", async () => {
		await server[Symbol.asyncDispose]();
		const refusals = [
			new ConnectError("ann lacks operator:write", Code.PermissionDenied),
			new ConnectError("the hall is referenced", Code.FailedPrecondition),
		];
		server = await startCinema({
			async beforeWrite() {
				const refusal = refusals.shift();
				if (refusal !== undefined) {
					throw refusal;
				}
			},
		});
		await put("Alien");
		const { code, seen } = await edit([
			(text) => text.replace("Alien", "Mine"),
			(text) => text.replace("Mine", "Ours"),
			(text) => text.replace("Ours", "Theirs"),
		]);
		expect(code).toBe(0);
		expect(seen[1]).toContain("# not allowed: ann lacks operator:write\n");
		expect(seen[2]).toContain("# the hall is referenced\n");
		expect(await title()).toBe("Theirs");
	});

	it("keeps what was written where it can't ask again, and says where", async () => {
		const wrong: Step = (text) => text.replace("title:", "titel:");
		for (const { code, err, file } of [await edit([wrong], false), await edit([wrong, (t) => t])]) {
			expect(code).toBe(2);
			expect(err).toContain(`your edit is in ${file}: correct it and run plinth apply`);
			expect(readFileSync(file, "utf8")).toContain("titel: Alien");
			rmSync(dirname(file), { recursive: true });
		}
	});

	it("loses neither side of a conflict", async () => {
		const { code, err, file } = await edit([
			async (text) => {
				await put("Theirs");
				return text.replace("Alien", "Mine");
			},
		]);
		expect(code).toBe(4);
		expect(err).toContain("has changed since the document was read");
		expect(await title()).toBe("Theirs");
		expect(readFileSync(file, "utf8")).toContain("title: Mine");
		rmSync(dirname(file), { recursive: true });
	});

	it("changes nothing where the editor has saved another encoding than UTF-8", async () => {
		let file = "";
		const { code, err } = await runPlinth(["edit", "film", "alien", "--server", server.address], {
			env: { VISUAL: "the-editor" },
			async runEditor(_command, path) {
				file = path;
				writeFileSync(path, readFileSync(path, "utf8").replace("Alien", "Äliens"), "latin1");
				return 0;
			},
		});
		expect(code).toBe(2);
		expect(err).toBe(
			`plinth: the edited file is not valid UTF-8, so nothing was changed: ${file}\n`,
		);
		expect(await title()).toBe("Alien");
		expect(readFileSync(file, "latin1")).toContain("title: Äliens");
		rmSync(dirname(file), { recursive: true });
	});

	it("says so where the editor fails, or another resource is left", async () => {
		const failed = await edit([]);
		expect(failed).toMatchObject({ code: 1 });
		expect(failed.err).toContain("the editor exited with code 1, so nothing was changed");
		const renamed = await edit([(text) => text.replace("name: alien", "name: other")], false);
		expect(renamed.err).toContain("an edit can't rename");
		for (const { file } of [failed, renamed]) {
			rmSync(dirname(file), { recursive: true });
		}
	});
});

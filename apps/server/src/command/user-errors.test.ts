import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CommandResult } from "./command-lines.fixture.ts";
import { exitCodes } from "./exit-codes.ts";

const workspace = fileURLToPath(new URL("../../../../", import.meta.url));
const program = fileURLToPath(new URL("./command-lines.fixture.ts", import.meta.url));

let folder: string;

/** Runs command lines in the folder. */
async function run(
	commandLines: readonly (readonly string[])[],
	wrapper: readonly string[] = [],
): Promise<readonly CommandResult[]> {
	const lines = JSON.stringify(commandLines);
	const [command = "", ...args] = [...wrapper, process.execPath, program, lines];
	const { stdout } = await promisify(execFile)(command, args, {
		cwd: folder,
		timeout: 300_000,
	});
	return JSON.parse(stdout);
}

/** The message on standard error, without the folders of this machine, of a command line that fails. */
function messageOf(result: CommandResult | undefined, code: number): string | undefined {
	expect({ code: result?.code, stdout: result?.stdout }).toEqual({ code, stdout: "" });
	return result?.stderr.replaceAll(workspace, "/plinth/").replaceAll(folder, "/project");
}

const inMemory = ["--storage", "memory", "--listen", "127.0.0.1:0"];

const start = `import { defineModule } from "${workspace}apps/server/src/module/index.ts";`;
const controllers = `import { defineController } from "${workspace}packages/controller/src/index.ts";`;
const music = `import { Artist, Tour } from "${workspace}apps/server/testdata/music.ts";`;
const defineType = `import { defineType } from "${workspace}packages/resource/src/index.ts";`;
const malformed = `import { OddSchema, PlainSchema, UnscopedSchema } from "${workspace}apps/server/testdata/gen/malformed/v1/malformed_pb.ts";`;
const end = 'export default defineModule({ name: "a" });';
const prober = `defineController({ name: "prober", manages: Artist, async reconcile() {} })`;

/** Files of modules. */
const files: Readonly<Record<string, readonly string[]>> = {
	"package.json": ['{ "type": "module" }'],
	"syntax.ts": [start, "", "const types = [1, 2;", end],
	"uses-syntax.js": ['import "./syntax.js";'],
	"syntax.js": ["", "const types = {;"],
	"open.ts": [start, "export default {"],
	"uses-open.js": ['import "./open.js";'],
	"open.js": ["const types = {"],
	"comment.ts": [start, "/* types"],
	"uses-enum.ts": ['import "./color.ts";'],
	"color.ts": ["export const red = 1;", "", "enum Color { red, green }"],
	"no-file.ts": [start, 'import { Site } from "./types/sit.js";', end],
	"types/site.ts": ["export interface Site {}"],
	"no-generated.ts": ['import "./gen/site_pb.ts";'],
	"no-package.ts": ['import { z } from "zood/mini";'],
	"no-export.ts": [start, 'import { Site } from "./types/site.ts";', end],
	"throws.ts": [
		start,
		"function url(): string {",
		'	throw new Error("no DATABASE_URL", { cause: new RangeError("it is empty") });',
		"}",
		"defineModule({ name: url() });",
	],
	"throws-text.ts": ['throw "no music today";'],
	"no-default.ts": ["export const a = 1;"],
	"no-module.ts": ['export default { name: "a" };'],
	"no-name.ts": [start, 'export default defineModule({ name: "" });'],
	"no-spec.ts": [defineType, malformed, "export default defineType(PlainSchema);"],
	"no-scope.ts": [defineType, malformed, "export default defineType(UnscopedSchema);"],
	"options.ts": [
		...[start, defineType, malformed],
		'export default defineModule({ name: "odd", types: [defineType(OddSchema)] });',
	],
	"music.ts": [start, music, 'export default defineModule({ name: "music", types: [Artist] });'],
	"music-2.ts": [start, 'export default defineModule({ name: "music" });'],
	"artists.ts": [start, music, 'export default defineModule({ name: "b", types: [Artist] });'],
	"artists-twice.ts": [
		...[start, music],
		'export default defineModule({ name: "b", types: [Artist, Artist] });',
	],
	"things.ts": [
		start,
		`import { thingReferencing } from "${workspace}packages/db-constraint/src/testing.fixture.ts";`,
		'const Thing = thingReferencing(new Map([[1, "alpha.v1.Thong"], [2, "gamma.v1.Thing"]]));',
		'export default defineModule({ name: "things", types: [Thing] });',
	],
	"prober.ts": [
		...[start, controllers, music],
		`export default defineModule({ name: "b", types: [Artist], controllers: [${prober}] });`,
	],
	"prober-2.ts": [
		...[start, controllers, music],
		`export default defineModule({ name: "c", controllers: [${prober}] });`,
	],
	"watches.ts": [
		...[start, music],
		`import { defineController, sameNameAs, watch } from "${workspace}packages/controller/src/index.ts";`,
		`const watches = [watch(Tour, { map: () => [] })];`,
		`const controller = { ...${prober}, watches };`,
		'export default defineModule({ name: "d", types: [Artist], controllers: [controller] });',
	],
	"reaper.ts": [
		...[start, controllers, music],
		`const controller = { ...${prober}, name: "reaper" };`,
		'export default defineModule({ name: "e", types: [Artist], controllers: [controller] });',
	],
	"no-reconcile.ts": [
		...[start, controllers, music],
		`const controller = { ...${prober}, concurrency: 0 };`,
		'export default defineModule({ name: "f", types: [Artist], controllers: [controller] });',
	],
	"access.yaml": ["policies: {}"],
	"not.pem": ["no certificate"],
	"flat.yaml": ["lisen: 127.0.0.1:1"],
	"nested.yaml": ["storage: memory", "limits:", "  stopTimeot: 1s"],
	"value.yaml": ["storage: memory", "limits:", "  stopTimeout: soon"],
	"tab.yaml": ["limits:", "\tstopTimeout: 1s"],
	"indentation.yaml": ["limits:", "  stopTimeout: 1s", " messageBytes: 1"],
};

const { failed, usage } = exitCodes;

/** A command line, its exit code, and its whole output on standard error. */
const cases: readonly (readonly [string, readonly string[], number, string])[] = [
	[
		"TypeScript that can't be parsed",
		[...inMemory, "--module", "syntax.ts"],
		failed,
		[
			"module syntax.ts can't be imported: syntax.ts:3:20: SyntaxError: Expected ',', got ';'",
			"",
			'    1 | import { defineModule } from "/plinth/apps/server/src/module/index.ts";',
			"    2 |",
			"  > 3 | const types = [1, 2;",
			"      |                    ^",
			'    4 | export default defineModule({ name: "a" });',
		].join("\n"),
	],
	[
		"JavaScript that can't be parsed, in an imported file",
		[...inMemory, "--module", "uses-syntax.js"],
		failed,
		[
			"module uses-syntax.js can't be imported: syntax.js:2:16: SyntaxError: Unexpected token ';'",
			"",
			"    1 |",
			"  > 2 | const types = {;",
			"      |                ^",
		].join("\n"),
	],
	[
		"TypeScript that ends too early",
		[...inMemory, "--module", "open.ts"],
		failed,
		[
			"module open.ts can't be imported: open.ts:2:17: SyntaxError: Unexpected token `<eof>`. Expected identifier, string literal, numeric literal or [ for the computed key",
			"",
			'    1 | import { defineModule } from "/plinth/apps/server/src/module/index.ts";',
			"  > 2 | export default {",
			"      |                 ^",
		].join("\n"),
	],
	[
		"TypeScript with a comment that does not end",
		[...inMemory, "--module", "comment.ts"],
		failed,
		[
			"module comment.ts can't be imported: comment.ts:2: SyntaxError: Unterminated block comment",
			"",
			'    1 | import { defineModule } from "/plinth/apps/server/src/module/index.ts";',
			"  > 2 | /* types",
		].join("\n"),
	],
	[
		"JavaScript that ends too early, in an imported file",
		[...inMemory, "--module", "uses-open.js"],
		failed,
		[
			"module uses-open.js can't be imported: open.js:2:1: SyntaxError: Unexpected end of input",
			"",
			"    1 | const types = {",
			"  > 2 |",
			"      | ^",
		].join("\n"),
	],
	[
		"TypeScript that Node.js can't strip, in an imported file",
		[...inMemory, "--module", "uses-enum.ts"],
		failed,
		[
			`module uses-enum.ts can't be imported: color.ts:3:1: TypeScript enum is not supported in strip-only mode: Node.js only erases types, so a module can use erasable syntax only, for example an object with "as const" instead of an enum; "erasableSyntaxOnly" in tsconfig.json reports all such places`,
			"",
			"    1 | export const red = 1;",
			"    2 |",
			"  > 3 | enum Color { red, green }",
			"      | ^^^^^^^^^^^^^^^^^^^^^^^^^",
		].join("\n"),
	],
	[
		"an import of a file that does not exist",
		[...inMemory, "--module", "no-file.ts"],
		failed,
		[
			"module no-file.ts can't be imported: no-file.ts:2:22: no such file: types/sit.js; did you mean ./types/site.ts?",
			"",
			'    1 | import { defineModule } from "/plinth/apps/server/src/module/index.ts";',
			'  > 2 | import { Site } from "./types/sit.js";',
			"      |                      ^^^^^^^^^^^^^^^^",
			'    3 | export default defineModule({ name: "a" });',
		].join("\n"),
	],
	[
		"an import of generated code that does not exist",
		[...inMemory, "--module", "no-generated.ts"],
		failed,
		[
			"module no-generated.ts can't be imported: no-generated.ts:1:8: no such file: gen/site_pb.ts; it is generated code: run buf generate",
			"",
			'  > 1 | import "./gen/site_pb.ts";',
			"      |        ^^^^^^^^^^^^^^^^^^",
		].join("\n"),
	],
	[
		"an import of a package that is not installed",
		[...inMemory, "--module", "no-package.ts"],
		failed,
		[
			"module no-package.ts can't be imported: no-package.ts:1:19: package zood is not installed: npm install zood",
			"",
			'  > 1 | import { z } from "zood/mini";',
			"      |                   ^^^^^^^^^^^",
		].join("\n"),
	],
	[
		"an import of a type without the word type",
		[...inMemory, "--module", "no-export.ts"],
		failed,
		[
			`module no-export.ts can't be imported: no-export.ts:2:10: ./types/site.ts has no export Site; if it is a type, import it with "import type"`,
			"",
			'    1 | import { defineModule } from "/plinth/apps/server/src/module/index.ts";',
			'  > 2 | import { Site } from "./types/site.ts";',
			"      |          ^^^^",
			'    3 | export default defineModule({ name: "a" });',
		].join("\n"),
	],
	[
		"a module that throws",
		[...inMemory, "--module", "throws.ts"],
		failed,
		[
			"module throws.ts can't be imported: no DATABASE_URL",
			"    at url (throws.ts:3:8)",
			"    at throws.ts:5:22",
			"caused by RangeError: it is empty",
			"    at url (throws.ts:3:46)",
			"    at throws.ts:5:22",
		].join("\n"),
	],
	[
		"a module that throws something else",
		[...inMemory, "--module", "throws-text.ts"],
		failed,
		"module throws-text.ts can't be imported: it throws 'no music today'",
	],
	[
		"a module file that does not exist",
		[...inMemory, "--module", "throw.ts"],
		failed,
		"module throw.ts: no such file (looked for /project/throw.ts); did you mean throws.ts?",
	],
	[
		"a module file with the extension of the built one",
		[...inMemory, "--module", "throws.js"],
		failed,
		"module throws.js: no such file (looked for /project/throws.js); did you mean throws.ts?",
	],
	[
		"a folder",
		[...inMemory, "--module", "types"],
		failed,
		"module types is not a file: name the file that exports the module",
	],
	[
		"a module without a default export",
		[...inMemory, "--module", "no-default.ts"],
		failed,
		"module no-default.ts has no default export: write export default defineModule({ … }), from @plinth/server/module",
	],
	[
		"a default export that is not a module",
		[...inMemory, "--module", "no-module.ts"],
		failed,
		"the default export of module no-module.ts is not what defineModule({ … }) of @plinth/server/module returns",
	],
	[
		"a module without a name",
		[...inMemory, "--module", "no-name.ts"],
		failed,
		[
			"module no-name.ts can't be imported: a module needs a name: defineModule({ name: … })",
			"    at no-name.ts:2:16",
		].join("\n"),
	],
	[
		"a message without the option of types",
		[...inMemory, "--module", "no-spec.ts"],
		failed,
		[
			"module no-spec.ts can't be imported: message malformed.v1.Plain is not a resource type: it lacks the option (plinth.resource.v1.spec), such as option (plinth.resource.v1.spec) = { scope: SCOPE_NAMESPACE };",
			"    at no-spec.ts:3:16",
		].join("\n"),
	],
	[
		"a message without a scope",
		[...inMemory, "--module", "no-scope.ts"],
		failed,
		[
			"module no-scope.ts can't be imported: resource type malformed.v1.Unscoped needs a scope in its option (plinth.resource.v1.spec): SCOPE_CLUSTER, SCOPE_PARTITION or SCOPE_NAMESPACE",
			"    at no-scope.ts:3:16",
		].join("\n"),
	],
	[
		"malformed options of a type",
		[...inMemory, "--module", "options.ts"],
		failed,
		[
			"module options.ts can't be imported: module odd: options of its types are not valid:",
			'- type malformed.v1.Odd: (plinth.type.v1.table) path "labelText": malformed.v1.Odd has no field "labelText"; did you mean "label_text"?',
			'- type malformed.v1.Odd: (plinth.type.v1.table) path "year": malformed.v1.Odd has no field "year"',
			"- type malformed.v1.Odd: field malformed.v1.Odd.album: (plinth.schema.v1.reference) is for fields of plinth.resource.v1.Reference",
			"    at options.ts:4:16",
		].join("\n"),
	],
	[
		"two modules of the same name",
		[...inMemory, "--module", "music.ts", "--module", "music-2.ts"],
		failed,
		"two modules are named music, those of music.ts and music-2.ts: rename one in its defineModule({ name })",
	],
	[
		"a module file that is configured twice",
		[...inMemory, "--module", "music.ts", "--module", "music.ts"],
		failed,
		"module music.ts is configured twice: name it once",
	],
	[
		"two types of the same name",
		[...inMemory, "--module", "music.ts", "--module", "artists.ts"],
		failed,
		"module b: resource type music.v1.Artist is registered already, by module music: keep it in one of the two",
	],
	[
		"two types of the same name in one module",
		[...inMemory, "--module", "artists-twice.ts"],
		failed,
		"module b: resource type music.v1.Artist is registered already: it is twice in defineModule({ types })",
	],
	[
		"a reference to a type that is not registered",
		[...inMemory, "--module", "things.ts"],
		failed,
		[
			"references of the types are not valid:",
			"- type alpha.v1.Thing: field acme.alpha.v1.Thing.belongs_to: references gamma.v1.Thing, but no type of the group gamma is registered: register the type, or, if another service has it, name that in the imports of (plinth.schema.v1.service)",
			"- type alpha.v1.Thing: field acme.alpha.v1.Thing.needs: references alpha.v1.Thong, which is not registered",
		].join("\n"),
	],
	[
		"two controllers of the same name",
		[...inMemory, "--module", "prober.ts", "--module", "prober-2.ts"],
		failed,
		"module c: controller prober: module b has another controller of this name: rename one of them",
	],
	[
		"a controller that manages a type that is not registered",
		[...inMemory, "--module", "prober-2.ts"],
		failed,
		"module c: controller prober manages music.v1.Artist, which is not registered: add it to the types of a module, defineModule({ types: [ … ] })",
	],
	[
		"a controller that watches a type that is not registered",
		[...inMemory, "--module", "watches.ts"],
		failed,
		"module d: controller prober watches tours.v1.Tour, which is not registered: add it to the types of a module, defineModule({ types: [ … ] })",
	],
	[
		"a controller with the name of one of the server",
		[...inMemory, "--module", "reaper.ts"],
		failed,
		"module e: controller reaper: the server has a controller of this name: rename it",
	],
	[
		"an option of a controller",
		[...inMemory, "--module", "no-reconcile.ts"],
		failed,
		"module f: controller prober: concurrency must be a whole number of 1 or more, got 0",
	],
	[
		"an address that is in use",
		["--storage", "memory", "--listen", "127.0.0.1:PORT"],
		failed,
		"can't listen on 127.0.0.1:PORT: another program listens there; stop it, or choose another address with --listen",
	],
	[
		"an address of another machine",
		["--storage", "memory", "--listen", "192.0.2.1:7575", "--allow-anonymous"],
		failed,
		"can't listen on 192.0.2.1:7575: this machine has no such address; choose another with --listen",
	],
	[
		"a data directory that is a file",
		["--listen", "127.0.0.1:0", "--data-dir", "music.ts"],
		failed,
		"storage music.ts: the data directory (--data-dir) can't be used: it is a file, not a directory (EEXIST: file already exists, mkdir '/project/music.ts')",
	],
	[
		"a data directory below a file",
		["--listen", "127.0.0.1:0", "--data-dir", "music.ts/data"],
		failed,
		"storage music.ts/data: the data directory (--data-dir) can't be used: a part of its path is a file, not a directory (ENOTDIR: not a directory, lstat '/project/music.ts/data')",
	],
	[
		"a misspelled flag",
		["--lisen", "127.0.0.1:7575"],
		usage,
		"unknown flag --lisen: did you mean --listen?",
	],
	["a flag without a value", ["--listen"], usage, "--listen needs a value, see --help"],
	[
		"a malformed value of a flag",
		["--listen", "7575x"],
		usage,
		'--listen "7575x" is not <host>:<port>, such as 127.0.0.1:7575 or [::1]:7575, with a port up to 65535',
	],
	[
		"an unknown storage",
		["--storage", "sqlit"],
		usage,
		'--storage "sqlit" is not one of sqlite, memory, etcd',
	],
	["a misspelled command", ["backpu"], usage, "unknown command backpu: did you mean backup?"],
	[
		"a certificate that does not exist",
		[...inMemory, "--tls-cert-file", "no.pem", "--tls-key-file", "no.pem"],
		usage,
		"no.pem: no such file",
	],
	[
		"a file without a certificate",
		[...inMemory, "--tls-cert-file", "not.pem", "--tls-key-file", "not.pem"],
		usage,
		"not.pem contains no certificate in PEM",
	],
	[
		"keys of JWTs that are none",
		[
			...[...inMemory, "--access-file", "access.yaml", "--jwt-jwks-file", "not.pem"],
			...["--jwt-issuer", "https://issuer.example", "--jwt-audience", "plinth"],
		],
		usage,
		"not.pem is not JSON",
	],
	[
		"a misspelled key of a configuration file",
		["--config", "flat.yaml"],
		usage,
		"flat.yaml:1:1: unknown key lisen: did you mean listen?",
	],
	[
		"a misspelled key of a section",
		["--config", "nested.yaml"],
		usage,
		"nested.yaml:3:3: unknown key limits.stopTimeot: did you mean limits.stopTimeout?",
	],
	[
		"a malformed value in a configuration file",
		["--config", "value.yaml"],
		usage,
		'value.yaml:3:3: limits.stopTimeout "soon" is not a duration above 0 with a unit, such as 500ms, 10s or 5m',
	],
	[
		"a tab in a configuration file",
		["--config", "tab.yaml"],
		usage,
		"tab.yaml:2:1: Tabs are not allowed as indentation: use spaces",
	],
	[
		"wrong indentation in a configuration file",
		["--config", "indentation.yaml"],
		usage,
		"indentation.yaml:3:1: All mapping items must start at the same column",
	],
	[
		"a configuration file that does not exist",
		["--config", "nowhere.yaml"],
		usage,
		"nowhere.yaml: no such file",
	],
];

let results: readonly CommandResult[];
let port: number;

beforeAll(async () => {
	folder = await mkdtemp(join(tmpdir(), "plinth-errors-"));
	for (const [name, lines] of Object.entries(files)) {
		await mkdir(dirname(join(folder, name)), { recursive: true });
		await writeFile(join(folder, name), `${lines.join("\n")}\n`);
	}
	await using other = createServer().listen(0, "127.0.0.1");
	await once(other, "listening");
	({ port } = other.address() as AddressInfo);
	results = await run(
		cases.map(([, args]) => args.map((each) => each.replace("PORT", String(port)))),
	);
});

afterAll(() => rm(folder, { recursive: true }));

describe("an error of a user is a sentence", () => {
	it.each(cases.map((each, index) => [...each, index] as const))(
		"%s",
		(_name, _args, code, message, index) => {
			const found = messageOf(results[index], code)?.replaceAll(String(port), "PORT");
			expect(found).toBe(`plinth-server: ${message}\n`);
		},
	);
});

const isLinux = process.platform === "linux";
const isRoot = process.getuid?.() === 0;
const withoutRights = isRoot ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : [];
const readOnlyMount = [
	...["unshare", "--mount", "--map-root-user", "sh", "-c"],
	...['mount -t tmpfs -o ro none read-only && exec "$@"', "sh"],
];

/** Whether this machine has the program, and this user may use it. */
function canUse([command = "true", ...args]: readonly string[]): boolean {
	return isLinux && spawnSync(command, args).status === 0;
}

describe("an error of the operating system is a sentence", () => {
	it.skipIf(!canUse(isRoot ? [...withoutRights, "true"] : []))(
		"about rights that the user lacks",
		async () => {
			await mkdir(join(folder, "others"), { mode: 0o500 });
			const [port, directory] = await run(
				[
					["--storage", "memory", "--listen", "127.0.0.1:80"],
					["--listen", "127.0.0.1:0", "--data-dir", "others"],
				],
				withoutRights,
			);
			expect(messageOf(port, failed)).toBe(
				"plinth-server: can't listen on 127.0.0.1:80: not permitted; choose a port above 1023 with --listen\n",
			);
			expect(messageOf(directory, failed)).toBe(
				`plinth-server: storage others: the data directory (--data-dir) can't be used: user ${process.getuid?.()}, who runs this process, needs to read, write and search it (EACCES: permission denied, access 'others')\n`,
			);
		},
	);

	it.skipIf(!canUse(["unshare", "--mount", "--map-root-user", "true"]))(
		"about a read-only file system",
		async () => {
			await mkdir(join(folder, "read-only"));
			const results = await run(
				[
					["--listen", "127.0.0.1:0", "--data-dir", "read-only"],
					["--listen", "127.0.0.1:0", "--data-dir", "read-only/data"],
				],
				readOnlyMount,
			);
			expect(results.map((each) => messageOf(each, failed))).toEqual([
				"plinth-server: storage read-only: the data directory (--data-dir) can't be used: its file system is read-only (EROFS: read-only file system, access 'read-only')\n",
				"plinth-server: storage read-only/data: the data directory (--data-dir) can't be used: its file system is read-only (EROFS: read-only file system, mkdir '/project/read-only/data')\n",
			]);
		},
	);
});

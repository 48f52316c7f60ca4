import type { Clock, Timer } from "@plinth/runtime";
import { Children } from "./child/children.ts";
import type { ChildMessage } from "./child/messages.ts";
import { type Change, WatchedFiles } from "./files/watched-files.ts";
import { openFront } from "./front/open-front.ts";
import type { TcpFront } from "./front/tcp-front.ts";
import type { DevContext, DevFlags } from "./project/dev-options.ts";
import { findProject, type Project } from "./project/project.ts";
import { type ProjectServer, projectServer } from "./project/server-flags.ts";
import { describeError } from "./report/describe-error.ts";
import { shownPath } from "./report/problem.ts";
import type { Terminal } from "./report/terminal.ts";
import type { ChildId, SupervisionReport } from "./supervisor/supervision.ts";
import { type SupervisedChild, Supervisor } from "./supervisor/supervisor.ts";
import { createGenerator, type Generator } from "./tools/generator.ts";
import { TypeCheck } from "./tools/type-check.ts";

/** What `plinth dev` uses of its process. */
export interface DevEnvironment extends DevContext {
	readonly terminal: Terminal;
	readonly clock: Clock;
	/** Aborts when the user ends everything. */
	readonly signal: AbortSignal;
}

/** How long a child may take to stop controllers and close the storage after running calls were ended. */
const stopGraceMs = 4_000;

/** How long an import may take before the user is told of it. */
const slowImportMs = 10_000;

/**
 * Runs the server of a project, and restarts it when its code changes, until the signal aborts.
 *
 * @throws DevError if the project or its port can't be used.
 */
export async function runDev(flags: DevFlags, environment: DevEnvironment): Promise<void> {
	const project = findProject(flags, environment);
	const server = projectServer(flags, environment);
	const { front, address } = await openFront(server.listen, environment.clock);
	const session = new DevSession(project, { ...server, listen: address }, front, environment);
	try {
		await session.run();
	} finally {
		await front.close();
	}
}

/** One run of `plinth dev`. */
class DevSession {
	readonly #project: Project;
	readonly #server: ProjectServer;
	readonly #front: TcpFront;
	readonly #environment: DevEnvironment;
	readonly #supervisor: Supervisor;
	readonly #files: WatchedFiles;
	readonly #generator: Generator | undefined;
	readonly #typeCheck: TypeCheck | undefined;
	readonly #children: Children;
	readonly #ports = new Map<ChildId, number>();
	#newest: ChildId = 0;
	#sinceMs = performance.now();
	#typesAreUnchecked = true;
	#isGenerating = false;
	#slowImport: Timer | undefined;

	constructor(
		project: Project,
		server: ProjectServer,
		front: TcpFront,
		environment: DevEnvironment,
	) {
		const { clock } = environment;
		this.#project = project;
		this.#server = server;
		this.#front = front;
		this.#environment = environment;
		this.#generator =
			project.generator &&
			createGenerator({ program: project.generator.program, folder: project.folder, clock });
		this.#typeCheck = this.#createTypeCheck();
		this.#files = new WatchedFiles({
			clock,
			codeFolder: project.codeFolder,
			generatorInputs: project.generator?.inputs ?? [],
			onChange: (change) => this.#onChange(change),
		});
		this.#children = new Children({
			flags: server.flags,
			folder: project.folder,
			environment: environment.environment,
			onLine: (line) => environment.terminal.serverLine(line),
			onImported: (files) => this.#files.imported(files),
		});
		this.#supervisor = new Supervisor({
			clock,
			stopMs: server.stopLimitMs + stopGraceMs,
			spawn: (id) => this.#spawn(id),
			generate: (signal) => this.#generate(signal),
			forward: (id) => this.#forward(id),
			hold: () => front.hold(),
			report: (event) => this.#report(event),
		});
	}

	async run(): Promise<void> {
		const { terminal, signal } = this.#environment;
		const { listen, scheme, storage } = this.#server;
		const killAll = () => {
			this.#supervisor.killAll();
			this.#children.kill();
		};
		process.on("exit", killAll);
		terminal.say(`serves ${scheme}://${listen.host}:${listen.port}, data: ${storage}`);
		// While code is generated.
		this.#children.prepare();
		await this.#files.ready();
		this.#supervisor.dispatch({ kind: "changed", generate: this.#generator !== undefined });
		const end = () => this.#supervisor.dispatch({ kind: "end", force: false });
		signal.addEventListener("abort", end);
		if (signal.aborted) {
			end();
		}
		await this.#supervisor.ended;
		this.#slowImport?.cancel();
		this.#typeCheck?.stop();
		await this.#children.close();
		await this.#files.close();
		process.off("exit", killAll);
	}

	#onChange({ files, generate, sinceMs }: Change): void {
		this.#typesAreUnchecked = true;
		this.#children.changed(files);
		if (files.length === 0) {
			this.#checkTypes();
			return;
		}
		if (this.#isGenerating && !generate) {
			// Generated code, as a rule. The server starts when all of it is there.
			this.#supervisor.dispatch({ kind: "changed", generate });
			return;
		}
		this.#sinceMs = sinceMs;
		const { folder } = this.#project;
		const [first = "", ...others] = files.map((path) => shownPath(folder, path));
		const more = others.length === 0 ? "" : ` and ${others.length} more`;
		this.#environment.terminal.say(`changed: ${first}${more}`);
		this.#supervisor.dispatch({ kind: "changed", generate });
	}

	async #generate(signal: AbortSignal): Promise<boolean> {
		this.#isGenerating = true;
		this.#files.useInputs();
		const problems = (await this.#generator?.generate(signal)) ?? [];
		this.#isGenerating = false;
		for (const problem of problems) {
			this.#environment.terminal.problem(problem);
		}
		return problems.length === 0;
	}

	#spawn(id: ChildId): SupervisedChild {
		this.#newest = id;
		this.#environment.terminal.restarted();
		this.#files.useCode();
		this.#slowImport?.cancel();
		this.#slowImport = this.#environment.clock.setTimer(slowImportMs, () =>
			this.#environment.terminal.say(
				`the import of the module has taken ${slowImportMs / 1_000} s and goes on: does it wait at its top level?`,
				"yellow",
			),
		);
		const child = this.#children.take({
			onMessage: (message) => this.#onMessage(id, message),
			onExited: () => {
				this.#ports.delete(id);
				this.#imported(id);
				this.#supervisor.dispatch({ kind: "exited", id });
			},
		});
		return {
			serve: () => child.tell("serve"),
			stop: () => child.tell("stop"),
			kill: () => child.kill(),
		};
	}

	#onMessage(id: ChildId, message: ChildMessage): void {
		switch (message.kind) {
			case "imported":
				if (id === this.#newest) {
					this.#files.imported(message.files);
				}
				return;
			case "loaded":
				this.#imported(id);
				this.#supervisor.dispatch({ kind: "loaded", id });
				return;
			case "failed":
				this.#imported(id);
				if (id === this.#newest) {
					this.#environment.terminal.problem(describeError(message.error, this.#project.folder));
				}
				this.#supervisor.dispatch({ kind: "failed", id });
				return;
			case "ready":
				this.#ports.set(id, message.port);
				this.#supervisor.dispatch({ kind: "ready", id });
		}
	}

	/** A child has imported the module, or never will. */
	#imported(id: ChildId): void {
		if (id === this.#newest) {
			this.#slowImport?.cancel();
		}
	}

	#forward(id: ChildId): void {
		const port = this.#ports.get(id);
		if (port !== undefined) {
			this.#front.forward({ host: "127.0.0.1", port });
		}
	}

	#report(event: SupervisionReport): void {
		const { terminal } = this.#environment;
		switch (event.kind) {
			case "ready": {
				const seconds = ((performance.now() - this.#sinceMs) / 1_000).toFixed(1);
				terminal.say(`ready in ${seconds} s`, "green");
				break;
			}
			case "not-loaded":
				terminal.say(
					event.isServing
						? "the server before this change keeps running"
						: "no server runs: it starts after the next change",
					"yellow",
				);
				break;
			case "crashed":
				terminal.say(
					event.phase === "serving"
						? "the server has exited: it starts again after the next change"
						: "the server did not start: it starts again after the next change",
					"yellow",
				);
				break;
			case "killed":
				terminal.say("the server did not stop in time and was killed", "yellow");
		}
		this.#checkTypes();
		if (!this.#environment.signal.aborted) {
			this.#children.prepare();
		}
	}

	#createTypeCheck(): TypeCheck | undefined {
		const { folder, typeChecker: program } = this.#project;
		const { terminal } = this.#environment;
		return program === undefined
			? undefined
			: new TypeCheck({
					...{ program, folder },
					onResult: (problems) => {
						if (problems.length === 0) {
							terminal.say("no type errors are left", "green");
						}
						for (const problem of problems) {
							terminal.problem(problem);
						}
					},
				});
	}

	/** Checks types once the server has restarted, or has failed to: that has the processor first. */
	#checkTypes(): void {
		if (this.#typesAreUnchecked) {
			this.#typesAreUnchecked = false;
			this.#typeCheck?.start();
		}
	}
}

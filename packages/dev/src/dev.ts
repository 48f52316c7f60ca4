import type { Clock } from "@plinth/runtime";
import { type RunningChild, startChild } from "./child/child-process.ts";
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
import { Supervisor } from "./supervisor/supervisor.ts";
import { createGenerator, type Generator } from "./tools/generator.ts";
import { TypeCheck } from "./tools/type-check.ts";

/** What `plinth dev` uses of its process. */
export interface DevEnvironment extends DevContext {
	readonly terminal: Terminal;
	readonly clock: Clock;
	/** Aborts when the user ends everything. */
	readonly signal: AbortSignal;
}

/** How long a child may take to stop before it is killed. */
const stopMs = 5_000;

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
	readonly #ports = new Map<ChildId, number>();
	#newest: ChildId = 0;
	#sinceMs = performance.now();
	#typesAreUnchecked = true;
	#isGenerating = false;

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
			project.generator && createGenerator(project.generator.program, project.folder);
		this.#typeCheck = this.#createTypeCheck();
		this.#files = new WatchedFiles({
			clock,
			codeFolder: project.codeFolder,
			generatorInputs: project.generator?.inputs ?? [],
			onChange: (change) => this.#onChange(change),
		});
		this.#supervisor = new Supervisor({
			...{ clock, stopMs },
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
		const killAll = () => this.#supervisor.killAll();
		process.on("exit", killAll);
		terminal.say(`serves ${scheme}://${listen.host}:${listen.port}, data: ${storage}`);
		await this.#files.ready();
		this.#supervisor.dispatch({ kind: "changed", generate: this.#generator !== undefined });
		const end = () => this.#supervisor.dispatch({ kind: "end", force: false });
		signal.addEventListener("abort", end);
		if (signal.aborted) {
			end();
		}
		await this.#supervisor.ended;
		process.off("exit", killAll);
		this.#typeCheck?.stop();
		await this.#files.close();
	}

	#onChange({ files, generate, sinceMs }: Change): void {
		this.#typesAreUnchecked = true;
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
		const problem = await this.#generator?.generate(signal);
		this.#isGenerating = false;
		if (problem !== undefined) {
			this.#environment.terminal.problem(problem);
		}
		return problem === undefined;
	}

	#spawn(id: ChildId): { serve(): void; stop(): void; kill(): void } {
		const { environment, terminal } = this.#environment;
		this.#newest = id;
		this.#files.use();
		const child: RunningChild = startChild({
			flags: this.#server.flags,
			folder: this.#project.folder,
			environment,
			onMessage: (message) => this.#onMessage(id, message),
			onLine: (line) => terminal.serverLine(line),
			onExited: () => {
				this.#ports.delete(id);
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
				this.#supervisor.dispatch({ kind: "loaded", id });
				return;
			case "failed":
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
				terminal.say(`the server did not stop in ${stopMs / 1_000} s and was killed`, "yellow");
		}
		this.#checkTypes();
	}

	#createTypeCheck(): TypeCheck | undefined {
		const { folder, typeChecker: program } = this.#project;
		const { terminal } = this.#environment;
		return program === undefined
			? undefined
			: new TypeCheck({
					...{ program, folder },
					onResult: (problems) => {
						if (problems === undefined) {
							terminal.say("types are right again", "green");
						} else {
							terminal.problem(problems);
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

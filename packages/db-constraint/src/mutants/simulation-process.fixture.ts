import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isReport, type Order } from "./simulation-order.fixture.ts";

const plantFault = new URL("./plant-fault.fixture.ts", import.meta.url).href;
const simulatingProcess = fileURLToPath(
	new URL("./simulating-process.fixture.ts", import.meta.url),
);

/** A seed that takes longer hangs. It takes a second on a busy machine. */
const hangsAfterMs = 300_000;

/** How an order ended: with a broken promise, without any, or with the end of the process. */
export interface Outcome {
	readonly kind: "found" | "done" | "ended";
	/** The seed that broke a promise. */
	readonly seed?: number;
	readonly output: string;
}

interface Running {
	readonly child: ChildProcess;
	/** The end of what it has written to stderr. */
	stderr: string;
}

/** A process that simulates mutants, one after the other, so that its code is compiled once. */
export class SimulationProcess implements Disposable {
	readonly #program: string;
	#running: Running | undefined;

	constructor(program = simulatingProcess) {
		this.#program = program;
	}

	/**
	 * Simulates a mutant. If that ends the process, or hangs, another process is used for the next. The reason may be
	 * what a former mutant has left behind, so it is tried again in a process of its own.
	 */
	async run(order: Order): Promise<Outcome> {
		const isShared = this.#running !== undefined;
		const outcome = await this.#tryRun(order);
		return outcome.kind === "ended" && isShared ? this.#tryRun(order) : outcome;
	}

	[Symbol.dispose](): void {
		this.#running?.child.kill("SIGKILL");
		this.#running = undefined;
	}

	#tryRun(order: Order): Promise<Outcome> {
		this.#running ??= start(this.#program);
		const running = this.#running;
		const { child } = running;
		return new Promise((resolve) => {
			const hangs = setTimeout(() => child.kill("SIGKILL"), hangsAfterMs);
			const finish = (outcome: Outcome) => {
				clearTimeout(hangs);
				child.off("message", onMessage).off("close", onClose);
				resolve(outcome);
			};
			const onMessage = (report: unknown) => {
				hangs.refresh();
				if (!isReport(report)) {
					return;
				}
				if (report.kind === "found") {
					const { kind, seed, promise, message } = report;
					finish({ kind, seed, output: `seed ${seed}: promise ${promise}: ${message}` });
				} else if (report.kind === "done") {
					finish({ kind: "done", output: `no promise was broken in ${order.runs} seeds` });
				}
			};
			const onClose = () => {
				this.#running = undefined;
				finish({ kind: "ended", output: `the process ended: ${running.stderr}` });
			};
			child.on("message", onMessage).once("close", onClose);
			child.send(order, () => {
				// If it has ended, `close` says so.
			});
		});
	}
}

function start(program: string): Running {
	const child = fork(program, {
		execArgv: ["--import", plantFault],
		env: { ...process.env, NODE_ENV: "production" },
		stdio: ["ignore", "ignore", "pipe", "ipc"],
	});
	const running: Running = { child, stderr: "" };
	child.stderr?.on("data", (text) => {
		running.stderr = `${running.stderr}${text}`.slice(-4_000);
	});
	return running;
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { suspendProcess } from "@plinth/test-support/processes";
import type { Life, Target } from "../clients/life.ts";

const main = fileURLToPath(new URL("../../../../apps/server/src/main.ts", import.meta.url));
const moduleFile = fileURLToPath(new URL("../module/module.ts", import.meta.url));

/** Options of a server process. */
export interface ServerProcessOptions {
	/** The members of etcd, the one to ask first in front. */
	readonly endpoints: readonly string[];
	readonly prefix: string;
	/** More flags of the server. */
	readonly flags?: readonly string[];
}

/** The maximum of consecutive starts that end before the server listens. */
const mostAttempts = 20;

/** Without the variables of the tests, since a server reads variables with that prefix. */
const serverEnvironment = Object.fromEntries(
	Object.entries(process.env).filter(([name]) => !name.startsWith("PLINTH_")),
);

let lives = 0;

/** A Plinth server in its own process, which can be killed and started again. */
export class ServerProcess implements Target {
	/** Its whole standard error. */
	stderr = "";
	/** Its current address. */
	address = "";
	readonly #arguments: readonly string[];
	#child: ChildProcess | undefined;
	#life: Life | undefined;
	#born = Promise.withResolvers<Life>();
	/** Settles when there is more on standard error. */
	#said = Promise.withResolvers<void>();

	constructor({ endpoints, prefix, flags = [] }: ServerProcessOptions) {
		this.#arguments = [
			...[main, "--listen", "127.0.0.1:0", "--module", moduleFile],
			...["--storage", "etcd", "--etcd-endpoints", endpoints.join(",")],
			...["--etcd-prefix", prefix, ...flags],
		];
	}

	/** The id of the process that runs now. */
	get pid(): number {
		return this.#child?.pid ?? 0;
	}

	async life(signal: AbortSignal): Promise<Life | undefined> {
		if (this.#life !== undefined || signal.aborted) {
			return signal.aborted ? undefined : this.#life;
		}
		const aborted = Promise.withResolvers<undefined>();
		const onAbort = () => aborted.resolve(undefined);
		signal.addEventListener("abort", onAbort, { once: true });
		try {
			return await Promise.race([this.#born.promise, aborted.promise]);
		} finally {
			signal.removeEventListener("abort", onAbort);
		}
	}

	/**
	 * Starts it, and again if etcd was not reachable. Resolves when it listens.
	 *
	 * @throws Error with its log, if it repeatedly fails to start.
	 */
	async start(): Promise<Life> {
		for (let attempt = 1; ; attempt += 1) {
			const address = await this.#attempt();
			if (address === undefined) {
				if (attempt === mostAttempts) {
					throw new Error(`the server does not start: ${this.stderr.slice(-2000)}`);
				}
				await setTimeout(200);
				continue;
			}
			this.address = address;
			lives += 1;
			// Each life listens on another port: what is sent to one never gets to the next.
			const transport = createConnectTransport({ baseUrl: address, httpVersion: "2" });
			const life = { number: lives, client: createClient(ResourceService, transport) };
			this.#life = life;
			this.#born.resolve(life);
			return life;
		}
	}

	/** Kills it, as a power failure would. */
	async kill(): Promise<void> {
		const child = this.#child;
		this.#child = undefined;
		if (this.#life !== undefined) {
			this.#life = undefined;
			this.#born = Promise.withResolvers();
		}
		if (child !== undefined && child.exitCode === null && child.signalCode === null) {
			child.kill("SIGKILL");
			await once(child, "exit");
		}
	}

	/** Resolves with its exit code when it ends by itself. */
	async exited(): Promise<number | null> {
		const child = this.#child;
		if (child !== undefined && child.exitCode === null && child.signalCode === null) {
			await once(child, "exit");
		}
		return child?.exitCode ?? null;
	}

	/** Asks it to stop, and resolves with its exit code. */
	async stop(): Promise<number | null> {
		this.#child?.kill("SIGTERM");
		return this.exited();
	}

	/** Stops it, as a machine is that hangs. */
	suspend(): Promise<void> {
		return suspendProcess(this.#child);
	}

	/** Lets it go on. */
	resume(): void {
		this.#child?.kill("SIGCONT");
	}

	/** Resolves once standard error has the text. */
	async logs(pattern: RegExp): Promise<void> {
		while (!pattern.test(this.stderr)) {
			await this.#said.promise;
		}
	}

	/** The address that it listens on; `undefined` if it ended before. */
	async #attempt(): Promise<string | undefined> {
		const child = spawn(process.execPath, this.#arguments, {
			stdio: ["ignore", "pipe", "pipe"],
			env: serverEnvironment,
		});
		this.#child = child;
		let stdout = "";
		child.stderr.setEncoding("utf8").on("data", (text: string) => {
			this.stderr += text;
			this.#said.resolve();
			this.#said = Promise.withResolvers();
		});
		child.stdout.setEncoding("utf8");
		return new Promise((resolve) => {
			child.stdout.on("data", (text: string) => {
				stdout += text;
				const address = /listens on (http:\/\/\S+)\n/.exec(stdout)?.[1];
				if (address !== undefined) {
					resolve(address);
				}
			});
			child.once("exit", () => resolve(undefined));
		});
	}
}

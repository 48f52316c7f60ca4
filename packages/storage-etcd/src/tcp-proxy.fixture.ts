import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A connection to a server, such as etcd, that can be cut or blocked. */
export class TcpProxy {
	readonly url: string;
	readonly #server: Server;
	#targetPort: number;
	readonly #pairs = new Set<{ readonly client: Socket; readonly target: Socket }>();
	#refuses = false;
	#blocked = false;

	private constructor(server: Server, port: number, targetPort: number) {
		this.url = `http://127.0.0.1:${port}`;
		this.#server = server;
		this.#targetPort = targetPort;
		server.on("connection", (client) => this.#connect(client));
	}

	/** Starts a proxy to the server on this machine with that URL. */
	static async to(url: string): Promise<TcpProxy> {
		const server = createServer().listen(0, "127.0.0.1");
		await once(server, "listening");
		const address = server.address();
		if (address === null || typeof address === "string") {
			throw new TypeError("a server that listens has a port");
		}
		return new TcpProxy(server, address.port, Number(new URL(url).port));
	}

	/** New connections go to the server with that URL. */
	set target(url: string) {
		this.#targetPort = Number(new URL(url).port);
	}

	/** Breaks all connections, and refuses new ones. */
	cut(): void {
		this.#refuses = true;
		this.#break();
	}

	/** Accepts connections again. */
	mend(): void {
		this.#refuses = false;
	}

	/** Holds back responses. Requests pass. */
	block(): void {
		this.#blocked = true;
		for (const { target } of this.#pairs) {
			target.pause();
		}
	}

	/** Passes on the responses held back. */
	unblock(): void {
		this.#blocked = false;
		for (const { target } of this.#pairs) {
			target.resume();
		}
	}

	async dispose(): Promise<void> {
		this.#break();
		this.#server.close();
		await once(this.#server, "close");
	}

	#connect(client: Socket): void {
		if (this.#refuses) {
			client.destroy();
			return;
		}
		const target = connect(this.#targetPort, "127.0.0.1");
		const pair = { client, target };
		this.#pairs.add(pair);
		for (const socket of [client, target]) {
			socket.setNoDelay(true);
			// Its end is what matters, and that comes as "close".
			socket.on("error", () => {});
			socket.on("close", () => {
				client.destroy();
				target.destroy();
				this.#pairs.delete(pair);
			});
		}
		client.on("data", (data) => target.write(data));
		target.on("data", (data) => client.write(data));
		if (this.#blocked) {
			target.pause();
		}
	}

	#break(): void {
		for (const { client, target } of this.#pairs) {
			client.destroy();
			target.destroy();
		}
	}
}

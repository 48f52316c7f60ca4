import {
	MessageChannel,
	MessagePort,
	receiveMessageOnPort,
	Worker,
	workerData,
} from "node:worker_threads";

/**
 * A worker thread and a port of its own to it. Node's own port between a thread and its parent also carries messages of
 * Node: in its watch mode, each thread reports there which files it imports.
 */
export interface WorkerWithPort {
	readonly worker: Worker;
	post(message: unknown): void;
	/** The last message has been received, and the thread has ended with this code. */
	readonly ended: Promise<number>;
}

/** What a worker is started with. */
interface StartedWith {
	readonly port: MessagePort;
	readonly input: unknown;
}

/**
 * Starts a worker thread, which gets its port from `startedWith`.
 *
 * @param receive called with each message of the worker, in order.
 */
export function startWorker<Message>(
	file: URL,
	name: string,
	input: unknown,
	receive: (message: Message) => void,
): WorkerWithPort {
	const { port1: port, port2 } = new MessageChannel();
	const startedWith: StartedWith = { port: port2, input };
	const worker = new Worker(file, { workerData: startedWith, transferList: [port2], name });
	port.on("message", receive);
	const { promise: ended, resolve } = Promise.withResolvers<number>();
	worker.once("exit", (code) => {
		// A thread that ends may have sent messages that were not delivered yet.
		for (let last = receiveMessageOnPort(port); last; last = receiveMessageOnPort(port)) {
			receive(last.message);
		}
		port.close();
		resolve(code);
	});
	return { worker, post: (message) => port.postMessage(message), ended };
}

/** In a worker thread: its port to the thread that has started it, and its input. */
export function startedWith<Input>(): { readonly port: MessagePort; readonly input: Input } {
	if (!(workerData?.port instanceof MessagePort)) {
		throw new Error("this module is a worker thread of the SQLite storage, and runs only as one");
	}
	return workerData;
}

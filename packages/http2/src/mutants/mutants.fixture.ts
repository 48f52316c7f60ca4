/** A planted fault: a text that occurs once in a file, and what replaces it. */
export interface Mutant {
	readonly name: string;
	/** Below `src`. */
	readonly file: string;
	readonly find: string;
	readonly replace: string;
}

/** Faults that the random sessions must find. */
export const mutants: readonly Mutant[] = [
	{
		name: "sends one byte more than a stream's window",
		file: "connection/sender.ts",
		find: "Math.min(this.window, stream.sendWindow, this.#peer.maxFrameBytes)",
		replace: "Math.min(this.window, stream.sendWindow + 1, this.#peer.maxFrameBytes)",
	},
	{
		name: "sends one byte more than the connection's window",
		file: "connection/sender.ts",
		find: "length <= this.window &&",
		replace: "length <= this.window + 1 &&",
	},
	{
		name: "does not count small bodies against the connection's window",
		file: "connection/sender.ts",
		find: "this.window -= length;",
		replace: "this.window -= length > 100 ? length : 0;",
	},
	{
		name: "sends larger frames than the client accepts",
		file: "connection/sender.ts",
		find: "stream.sendWindow, this.#peer.maxFrameBytes)",
		replace: "stream.sendWindow, this.#peer.maxFrameBytes + 9)",
	},
	{
		name: "forgets a stream that waits for the connection",
		file: "connection/sender.ts",
		find: "				this.#ready.push(stream);\n				waiting++;",
		replace: "				stream.isReady = false;\n				waiting++;",
	},
	{
		name: "does not wake a stream that has got credit",
		file: "connection/streams.ts",
		find: "			stream.sendWindow += increment;\n			this.wake(stream);",
		replace: "			stream.sendWindow += increment;",
	},
	{
		name: "does not wake streams when the initial window grows",
		file: "connection/streams.ts",
		find: "			stream.initialSendWindow += by;\n			this.wake(stream);",
		replace: "			stream.initialSendWindow += by;",
	},
	{
		name: "changes the windows of open streams by the difference to the protocol's initial window",
		file: "connection/connection.ts",
		find: "this.streams.changeSendWindows(this.peer.initialWindowSize - windowBefore);",
		replace: "this.streams.changeSendWindows(this.peer.initialWindowSize - initialWindow);",
	},
	{
		name: "drops the bytes that wait when a response ends with trailers",
		file: "connection/sender.ts",
		find: "const isLast = stream.hasEnd && stream.unsentBytes === 0;",
		replace: "const isLast = stream.hasEnd;",
	},
	{
		name: "sends a piece of the queue twice",
		file: "connection/stream.ts",
		find: "this.#queueOffset = end;",
		replace: "this.#queueOffset = end > 9000 ? end - 1 : end;",
	},
	{
		name: "gives one byte more than was consumed",
		file: "connection/receive-window.ts",
		find: "const increment = this.#consumed;",
		replace: "const increment = this.#consumed + 1;",
	},
	{
		name: "keeps one byte of credit",
		file: "connection/receive-window.ts",
		find: "this.#credit += increment;\n		this.#consumed = 0;",
		replace: "this.#credit += increment;\n		this.#consumed = -1;",
	},
	{
		name: "returns credit only in halves of the window",
		file: "connection/receive-window.ts",
		find: "this.#consumed < this.#credit",
		replace: "this.#consumed < this.size / 2",
	},
	{
		name: "does not return the credit of padding",
		file: "connection/streams.ts",
		find: "this.returnCredit(stream, length - size);",
		replace: "this.returnCredit(stream, 0);",
	},
	{
		name: "returns credit only when something is consumed",
		file: "connection/streams.ts",
		find: "this.returnCredit(stream, length - size);",
		replace: "if (size < length) { this.returnCredit(stream, length - size); }",
	},
	{
		name: "does not return the credit of a stream that is reset",
		file: "connection/streams.ts",
		find: "		this.sender.drop(stream);\n		this.returnToConnection(stream.receiveWindow.unconsumed);",
		replace: "		this.sender.drop(stream);",
	},
	{
		name: "does not return the credit of a stream that has finished",
		file: "connection/streams.ts",
		find: "			this.returnToConnection(stream.receiveWindow.unconsumed);\n			this.host.streamErrors",
		replace: "			this.host.streamErrors",
	},
	{
		name: "refuses the last byte of a stream's window",
		file: "connection/receive-window.ts",
		find: "if (byteCount > this.#credit) {",
		replace: "if (byteCount >= this.#credit && byteCount > 0) {",
	},
	{
		name: "counts bytes of streams that were reset as unsent",
		file: "connection/sender.ts",
		find: "this.unsentBytes -= stream.dropQueue();",
		replace: "stream.dropQueue();",
	},
	{
		name: "does not notify handlers of streams that finish while the connection ends",
		file: "connection/streams.ts",
		find: "const streams = [...this.#finished, ...this.open];",
		replace: "const streams = [...this.open];",
	},
	{
		name: "does not catch internal errors",
		file: "connection/connection.ts",
		find: "			this.#failInternally();\n			this.#onInternalError(error);",
		replace: "			throw error;",
	},
	{
		name: "goes on after an internal error",
		file: "connection/connection.ts",
		find: "			this.#failInternally();\n",
		replace: "",
	},
	{
		name: "encodes with the index of an entry that was evicted",
		file: "hpack/encoder.ts",
		find: "			forget(this.#fields, keyOf(name, value), number);",
		replace: "			void [keyOf(name, value), number];",
	},
	{
		name: "sends a remembered block although the table has changed",
		file: "hpack/encoder.ts",
		find: "entry.generation === generation &&\n				entry.status",
		replace: "entry.status",
	},
	{
		name: "does not say that the table has become smaller",
		file: "hpack/encoder.ts",
		find: "if (smallest < last) {",
		replace: "if (smallest > last) {",
	},
	{
		name: "cuts the longest code of Huffman",
		file: "hpack/huffman.ts",
		find: "waiting = waiting * 2 ** bits + code;",
		replace: "waiting = (waiting * 2 ** bits + code) % 2 ** 32;",
	},
	{
		name: "loses the last byte of a frame in pieces",
		file: "frames/frame-reader.ts",
		find: "			position += copied;\n",
		replace: "			position += copied + (this.#filled > 5000 ? 1 : 0);\n",
	},
	{
		name: "makes more requests than its server accepts",
		file: "client/client-streams.ts",
		find: "return this.open.size < this.host.peer.maxConcurrentStreams;",
		replace: "return this.open.size <= this.host.peer.maxConcurrentStreams;",
	},
	{
		name: "does not send the requests that wait when one has ended",
		file: "client/client-streams.ts",
		find: "	protected override streamClosed(): void {\n		this.openWaiting();",
		replace: "	protected override streamClosed(): void {",
	},
	{
		name: "sends the body of a request that waits",
		file: "connection/sender.ts",
		find: "			stream.id !== 0 &&\n",
		replace: "",
	},
	{
		name: "forgets the requests that wait when the connection ends",
		file: "client/client-streams.ts",
		find: '			this.#dropWaiting(stream, code, "connection");',
		replace: "			void [stream, code];",
	},
	{
		name: "keeps the bytes of a request that is reset while it waits",
		file: "client/client-streams.ts",
		find: "		this.sender.drop(stream);\n		// The connection",
		replace: "		// The connection",
	},
	{
		name: "resets a request that its server still completes",
		file: "client/client-streams.ts",
		find: "id > lastStreamId",
		replace: "id >= lastStreamId",
	},
	{
		name: "delivers data before the head of a response",
		file: "connection/streams.ts",
		find: "!stream.acceptsData ||",
		replace: "",
	},
	{
		name: "ends a connection before its last response",
		file: "client/client-connection.ts",
		find: 'if (this.state === "draining" && this.streams.isIdle) {',
		replace: 'if (this.state === "draining") {',
	},
];

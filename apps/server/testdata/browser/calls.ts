/** The calls of a web page: this module runs in a browser. */
import { createRegistry } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { NamespaceSchema, ResourceService } from "@plinth/proto";

/** What has come of the calls of a page: texts, or the messages of errors. */
export interface Outcomes {
	readonly connect: string;
	readonly connectBinary: string;
	readonly grpcWeb: string;
	/** Of a request whose body is a stream. Chromium sends these over HTTP/2 only. */
	readonly streamed: string;
}

const type = { group: "tenancy", groupVersion: "v1", kind: "Namespace" };
const tenancy = { partition: "default" };

/** Reads, writes and watches the resources of the server at this address, by each protocol of web pages. */
export async function callAll(baseUrl: string): Promise<Outcomes> {
	const jsonOptions = { registry: createRegistry(NamespaceSchema) };
	const transports = [
		createConnectTransport({ baseUrl, jsonOptions }),
		createConnectTransport({ baseUrl, useBinaryFormat: true }),
		createGrpcWebTransport({ baseUrl }),
	].map((transport, index) => outcomeOf(() => callBy(transport, `page-${index}`)));
	const [connect = "", connectBinary = "", grpcWeb = ""] = await Promise.all(transports);
	return { connect, connectBinary, grpcWeb, streamed: await outcomeOf(() => stream(baseUrl)) };
}

async function outcomeOf(calls: () => Promise<string>): Promise<string> {
	return calls().catch(String);
}

/** Watches, writes, reads what was written, and waits for its event. */
async function callBy(transport: Transport, name: string): Promise<string> {
	const client = createClient(ResourceService, transport);
	const ended = new AbortController();
	const watch = client.watchList({ type, tenancy }, { signal: ended.signal });
	const events = watch[Symbol.asyncIterator]();
	let event = await events.next();
	while (!event.done && event.value.event.case !== "endOfSnapshot") {
		event = await events.next();
	}
	const id = { type, tenancy, name };
	const written = await client.write({ resource: { id } });
	const { resource } = await client.read({ id });
	if (resource?.version !== written.resource?.version) {
		return `read version ${resource?.version}, not ${written.resource?.version}`;
	}
	for (;;) {
		const { value, done } = await events.next();
		if (done) {
			return "the watch has ended";
		}
		if (value.event.case === "upsert" && value.event.value.resource?.id?.name === name) {
			ended.abort();
			return "written, read and watched";
		}
	}
}

async function stream(baseUrl: string): Promise<string> {
	const body = new ReadableStream({
		start(controller) {
			const text = JSON.stringify({ id: { type, tenancy, name: "default" } });
			controller.enqueue(new TextEncoder().encode(text));
			controller.close();
		},
	});
	const response = await fetch(`${baseUrl}/plinth.resource.v1.ResourceService/Read`, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body,
		duplex: "half",
	});
	return `status ${response.status}`;
}

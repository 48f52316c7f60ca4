import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { GeneratedFile, Printable } from "@bufbuild/protoplugin";
import type { FileScope } from "./file-scope.ts";

/** Prints the function that makes a cloning client of a client of the service. */
export function printCloningClient(
	output: GeneratedFile,
	scope: FileScope,
	service: DescService,
): void {
	const client = output.import("Client", "@connectrpc/connect", true);
	const desc = output.importSchema(service, true);
	const cloningClient = scope.helper("cloningClient");
	output.print`
${output.jsDoc(
	`Makes a client of ${service.typeName} that clones every request before it passes it on, and every
response before the caller gets it, streamed ones included. A cloning client is returned as it is.`,
)}
${output.export("function", `create${desc.name}CloningClient`)}(
  client: ${client}<typeof ${desc}>,
): ${client}<typeof ${desc}> {
  if (${cloningClient} in client) {
    return client;
  }
  return {
    [${cloningClient}]: true,`;
	for (const method of service.methods) {
		printMethod(output, scope, method);
	}
	output.print("  };");
	output.print("}");
}

function printMethod(output: GeneratedFile, scope: FileScope, method: DescMethod): void {
	const name = method.localName;
	const mapStream = scope.helper("mapStream");
	const response = scope.cloner(method.output);
	const request = (value: string): Printable => [
		scope.cloner(method.input),
		"(",
		output.import("create", "@bufbuild/protobuf"),
		"(",
		output.importSchema(method.input),
		`, ${value}))`,
	];
	const requests: Printable = [mapStream, "(requests, (request) => ", request("request"), ")"];
	switch (method.methodKind) {
		case "unary":
			output.print`    async ${name}(request, options) {
      return ${response}(await client.${name}(${request("request")}, options));
    },`;
			return;
		case "server_streaming":
			output.print`    ${name}(request, options) {
      return ${mapStream}(client.${name}(${request("request")}, options), ${response});
    },`;
			return;
		case "client_streaming":
			output.print`    async ${name}(requests, options) {
      return ${response}(await client.${name}(${requests}, options));
    },`;
			return;
		case "bidi_streaming":
			output.print`    ${name}(requests, options) {
      return ${mapStream}(client.${name}(${requests}, options), ${response});
    },`;
			return;
	}
}

import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Printable } from "@bufbuild/protoplugin";
import type { FileScope } from "./file-scope.ts";

/** Prints the function that wraps a client of the service in a cloning client. */
export function printCloningClient(scope: FileScope, service: DescService): void {
	const { output, own, helper, type } = scope;
	const clientType = type(": ", clientOf(scope, service));
	output.print`${description(scope, service)}
${output.export("function", functionName(scope, service))}(${own("client")}${clientType})${clientType} {
  if (${helper("cloningClient")} in client) {
    return client;
  }
  return {
    [${helper("cloningClient")}]: true,`;
	for (const method of service.methods) {
		printMethod(scope, method);
	}
	output.print`  };
}
`;
}

/** Prints the declaration of that function, for a `.d.ts` file. */
export function declareCloningClient(scope: FileScope, service: DescService): void {
	const { output, own } = scope;
	const clientType = clientOf(scope, service);
	output.print`${description(scope, service)}
${output.export("declare function", functionName(scope, service))}(${own("client")}: ${clientType}): ${clientType};
`;
}

function printMethod(scope: FileScope, method: DescMethod): void {
	const { output, helper } = scope;
	const name = method.localName;
	const schema = output.importSchema(method.input);
	const create = output.import("create", "@bufbuild/protobuf");
	const cloneRequest = scope.cloner(method.input);
	const cloneResponse = scope.cloner(method.output);
	// An init object may share objects with the caller, and `create` returns messages as they are.
	const message: Printable = [cloneRequest, "(", create, "(", schema, ", request))"];
	switch (method.methodKind) {
		case "unary":
			output.print`    async ${name}(request, options) {
      const message = ${message};
      return ${cloneResponse}(await client.${name}(message, options));
    },`;
			return;
		case "server_streaming":
			output.print`    ${name}(request, options) {
      const message = ${message};
      return ${helper("mapStream")}(client.${name}(message, options), ${cloneResponse});
    },`;
			return;
		case "client_streaming":
			output.print`    async ${name}(requests, options) {
      const messages = ${helper("mapStream")}(requests, (request) => ${message});
      return ${cloneResponse}(await client.${name}(messages, options));
    },`;
			return;
		case "bidi_streaming":
			output.print`    ${name}(requests, options) {
      const messages = ${helper("mapStream")}(requests, (request) => ${message});
      return ${helper("mapStream")}(client.${name}(messages, options), ${cloneResponse});
    },`;
			return;
	}
}

function description({ output }: FileScope, service: DescService): Printable {
	return output.jsDoc(
		`Makes a client of ${service.typeName} that clones every request on its way in and every
response on its way out, streamed ones included. A cloning client is returned as it is.`,
	);
}

function functionName({ output }: FileScope, service: DescService): string {
	return `create${output.importSchema(service).name}CloningClient`;
}

function clientOf({ output }: FileScope, service: DescService): Printable {
	const client = output.import("Client", "@connectrpc/connect", true);
	return [client, "<typeof ", output.importSchema(service, true), ">"];
}

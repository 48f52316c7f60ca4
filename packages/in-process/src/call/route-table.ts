import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
	Code,
	ConnectError,
	type ConnectRouter,
	createMethodImplSpec,
	createServiceImplSpec,
	type MethodImpl,
	type MethodImplSpec,
	type ServiceImpl,
} from "@connectrpc/connect";
import type { RouterOptions } from "../options.ts";

/** A registered method: its implementation, and the options of its service or its own. */
export interface Route {
	readonly spec: MethodImplSpec;
	readonly url: string;
	readonly options: RouterOptions;
}

/** Options of one registration; they take precedence over the router's options. */
type RegistrationOptions = Parameters<ConnectRouter["rpc"]>[2];

/**
 * The router that a `routes` function registers services with. It keeps the implementations as they
 * are, whereas the library's router turns them into handlers of bytes.
 */
export class RouteTable implements ConnectRouter {
	/** Handlers of bytes: always empty here. */
	readonly handlers: ConnectRouter["handlers"] = [];
	readonly #options: RouterOptions;
	readonly #byPath = new Map<string, Route>();
	/** Generated code has one descriptor per method, so most look-ups succeed by identity. */
	readonly #byMethod = new Map<DescMethod, Route>();

	constructor(options: RouterOptions) {
		this.#options = options;
	}

	service<T extends DescService>(
		service: T,
		implementation: Partial<ServiceImpl<T>>,
		options?: RegistrationOptions,
	): this {
		const spec = createServiceImplSpec(service, implementation);
		for (const method of Object.values(spec.methods)) {
			this.#add(method, options);
		}
		return this;
	}

	rpc<M extends DescMethod>(
		method: M,
		implementation: MethodImpl<M>,
		options?: RegistrationOptions,
	): this {
		this.#add(createMethodImplSpec(method, implementation), options);
		return this;
	}

	/**
	 * The route of a method, also by a descriptor from another copy of the generated code.
	 *
	 * @throws ConnectError Unimplemented if the method is not registered.
	 */
	find(method: DescMethod): Route {
		const route = this.#byMethod.get(method) ?? this.#byPath.get(pathOf(method));
		if (route === undefined) {
			throw new ConnectError(
				`${method.parent.typeName}.${method.name} is not registered with this transport`,
				Code.Unimplemented,
			);
		}
		return route;
	}

	/** As on the wire, the last registration of a method wins. */
	#add(spec: MethodImplSpec, options: RegistrationOptions): void {
		const path = pathOf(spec.method);
		const url = urlOf(spec.method);
		const route = { spec, url, options: { ...this.#options, ...options } };
		const former = this.#byPath.get(path);
		if (former !== undefined) {
			this.#byMethod.delete(former.spec.method);
		}
		this.#byPath.set(path, route);
		this.#byMethod.set(spec.method, route);
	}
}

/** The error of a method that streams requests, which this transport does not support. */
export function unsupportedKind(method: DescMethod): ConnectError {
	return new ConnectError(
		`${method.parent.typeName}.${method.name} is ${method.methodKind}: the in-process transport ` +
			"supports unary and server-streaming methods",
		Code.Unimplemented,
	);
}

/** What the URLs begin with that interceptors and handlers see. Nothing is ever sent to them. */
export const baseUrl = "http://in-process";

function urlOf(method: DescMethod): string {
	return `${baseUrl}${pathOf(method)}`;
}

function pathOf(method: DescMethod): string {
	return `/${method.parent.typeName}/${method.name}`;
}

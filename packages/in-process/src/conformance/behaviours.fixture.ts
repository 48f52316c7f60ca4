import type { Behaviour } from "./behaviour.fixture.ts";
import { callerInterceptorBehaviours } from "./caller-interceptors.fixture.ts";
import { cancellationBehaviours } from "./cancellation.fixture.ts";
import { deadlineBehaviours, shutdownBehaviours } from "./deadlines.fixture.ts";
import { errorBehaviours } from "./errors.fixture.ts";
import { headerBehaviours } from "./headers.fixture.ts";
import { leavingBehaviours } from "./leaving.fixture.ts";
import { serverInterceptorBehaviours } from "./server-interceptors.fixture.ts";
import { serverStreamBehaviours } from "./server-streams.fixture.ts";
import { streamCancellationBehaviours } from "./stream-cancellation.fixture.ts";
import { unaryBehaviours } from "./unary.fixture.ts";

/** The whole suite, by topic. */
export const behaviours: Readonly<Record<string, readonly Behaviour[]>> = {
	"Unary calls": unaryBehaviours,
	"Headers and trailers": headerBehaviours,
	Errors: errorBehaviours,
	Cancellation: cancellationBehaviours,
	"Cancellation of streams": streamCancellationBehaviours,
	"Leaving a stream": leavingBehaviours,
	Deadlines: deadlineBehaviours,
	Shutdown: shutdownBehaviours,
	"Interceptors of the caller": callerInterceptorBehaviours,
	"Interceptors of the server": serverInterceptorBehaviours,
	"Server streaming": serverStreamBehaviours,
};

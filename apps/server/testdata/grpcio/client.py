"""Calls the service of gRPC's interoperability tests with grpcio: `client.py ADDRESS [CA_FILE]`.

Prints the name of each test that failed, and why. Exits with 1 if there is one.
"""

import sys
import threading
import traceback

import grpc

from grpc.testing import test_pb2 as pb
from grpc.testing import test_pb2_grpc

TIMEOUT_S = 300
TESTS = []


def test(run):
    TESTS.append(run)
    return run


def expect(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def status_of(call):
    """The status of a call that must fail."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    raise AssertionError("the call succeeded")


def request(size=0, **fields):
    return pb.SimpleRequest(payload=pb.Payload(body=bytes(size)), **fields)


def output(*sizes, wait_us=0):
    return pb.StreamingOutputCallRequest(
        response_parameters=[
            pb.ResponseParameters(size=size, interval_us=wait_us) for size in sizes
        ]
    )


@test
def empty(stub):
    expect(stub.EmptyCall(pb.Empty(), timeout=TIMEOUT_S), pb.Empty())


@test
def large(stub):
    response = stub.UnaryCall(request(271828, response_size=314159), timeout=TIMEOUT_S)
    expect(len(response.payload.body), 314159)


@test
def larger_than_all_windows(stub):
    response = stub.UnaryCall(request(3_000_000, response_size=3_900_000), timeout=TIMEOUT_S)
    expect(len(response.payload.body), 3_900_000)


@test
def too_large(stub):
    call = lambda: stub.UnaryCall(request(5 * 1024**2), timeout=TIMEOUT_S)
    expect(status_of(call), grpc.StatusCode.RESOURCE_EXHAUSTED)
    empty(stub)


@test
def many_at_the_same_time(stub):
    calls = [stub.UnaryCall.future(request(100, response_size=n), timeout=TIMEOUT_S) for n in range(500)]
    expect([len(call.result().payload.body) for call in calls], list(range(500)))


@test
def error_with_message(stub):
    message = "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n"
    status = pb.EchoStatus(code=2, message=message)
    try:
        stub.UnaryCall(request(response_status=status), timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        expect((error.code(), error.details()), (grpc.StatusCode.UNKNOWN, message))
    else:
        raise AssertionError("the call succeeded")


@test
def metadata(stub):
    sent = (
        ("x-grpc-test-echo-initial", "test_initial_metadata_value"),
        ("x-grpc-test-echo-trailing-bin", b"\xab\x00\xff"),
    )
    _, call = stub.UnaryCall.with_call(request(), metadata=sent, timeout=TIMEOUT_S)
    assert sent[0] in list(call.initial_metadata()), call.initial_metadata()
    assert sent[1] in list(call.trailing_metadata()), call.trailing_metadata()


@test
def deadline(stub):
    responses = stub.StreamingOutputCall(output(1, wait_us=600_000_000), timeout=0.2)
    expect(status_of(lambda: list(responses)), grpc.StatusCode.DEADLINE_EXCEEDED)


@test
def cancellation(stub):
    responses = stub.StreamingOutputCall(output(1, *[1] * 1000, wait_us=1000), timeout=TIMEOUT_S)
    expect(len(next(responses).payload.body), 1)
    responses.cancel()
    expect(status_of(lambda: list(responses)), grpc.StatusCode.CANCELLED)


@test
def server_streaming(stub):
    sizes = [31415, 9, 2653, 0, 58979]
    responses = stub.StreamingOutputCall(output(*sizes), timeout=TIMEOUT_S)
    expect([len(response.payload.body) for response in responses], sizes)


@test
def slow_reader(stub):
    first = threading.Event()
    responses = stub.StreamingOutputCall(output(*[100_000] * 100), timeout=TIMEOUT_S)
    total = 0
    for response in responses:
        # Responses fill the window meanwhile.
        if total == 0:
            first.wait(0.2)
        total += len(response.payload.body)
    expect(total, 100 * 100_000)


@test
def client_streaming(stub):
    sizes = [27182, 8, 1828, 45904]
    requests = (
        pb.StreamingInputCallRequest(payload=pb.Payload(body=bytes(size))) for size in sizes
    )
    response = stub.StreamingInputCall(requests, timeout=TIMEOUT_S)
    expect(response.aggregated_payload_size, sum(sizes))


@test
def bidirectional_streaming(stub):
    responses = stub.FullDuplexCall(iter([output(5), output(7, 0)]), timeout=TIMEOUT_S)
    expect([len(response.payload.body) for response in responses], [5, 7, 0])


@test
def missing_method(stub):
    call = lambda: stub.UnimplementedCall(pb.Empty(), timeout=TIMEOUT_S)
    expect(status_of(call), grpc.StatusCode.UNIMPLEMENTED)


@test
def compressed_request(stub):
    """The server accepts no compression."""
    call = lambda: stub.UnaryCall(
        request(1000), compression=grpc.Compression.Gzip, timeout=TIMEOUT_S
    )
    expect(status_of(call), grpc.StatusCode.UNIMPLEMENTED)
    empty(stub)


def main(address, ca_file=None):
    # A machine that is configured to reach others through a proxy reaches itself without it.
    options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]
    if ca_file is None:
        channel = grpc.insecure_channel(address, options)
    else:
        with open(ca_file, "rb") as file:
            credentials = grpc.ssl_channel_credentials(file.read())
        channel = grpc.secure_channel(address, credentials, options)
    failed = 0
    with channel:
        stub = test_pb2_grpc.TestServiceStub(channel)
        for run in TESTS:
            try:
                run(stub)
            except Exception:
                failed += 1
                print(f"FAILED {run.__name__}: {traceback.format_exc()}")
    print(f"{len(TESTS) - failed} of {len(TESTS)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

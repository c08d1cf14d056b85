"""The exceptions of this package: all are a :class:`Error`, and of the built-in class that fits."""


class Error(Exception):
    """The base of all exceptions of this package."""


class ArgumentError(Error, ValueError):
    """An argument that a call cannot work with. The message says what to do."""


class DTypeError(Error, TypeError):
    """An argument of a type, or elements of a dtype, that a call cannot work with."""


class OutOfMemoryError(Error, MemoryError):
    """The device has too little memory. The call has changed nothing."""


class FileError(Error, OSError):
    """A file that cannot be read or written, or that is damaged."""


class DeviceError(Error, RuntimeError):
    """An error of the device or its driver."""

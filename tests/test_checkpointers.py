"""x"""

from tests.programs.byhand import create


async def test_it(checkpointer):
    """x"""
    await create(checkpointer)

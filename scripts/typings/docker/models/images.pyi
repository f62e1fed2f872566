class Image:
    tags: list[str]
